/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * UAR pages: where programs ring doorbells. A page can be read but not
 * written; a store to it faults, and the fault handler passes what was stored
 * to the page's owner, then continues after the store. Pages are created per
 * opened device by verbs/.
 *
 *      page + 0x000  +---------------------------+
 *           + 0x020  | completion queue: arm     |  EMU_UAR_OFFSET_CQ_ARM
 *                    |                           |
 *           + 0x800  | send queue, even register |  EMU_UAR_OFFSET_SQ
 *           + 0x900  | send queue, odd register  |
 *           + 0xa00  +---------------------------+
 */

#ifndef EMU_UAR_H_
#define EMU_UAR_H_

#include <stddef.h>
#include <stdint.h>

#define EMU_UAR_PAGE_SIZE     4096
#define EMU_UAR_MAX_PAGES     4096
#define EMU_UAR_OFFSET_CQ_ARM 0x20
#define EMU_UAR_OFFSET_SQ     0x800
#define EMU_UAR_SQ_REG_SIZE   0x100


/**
 * Called for each store of at least eight bytes to a page, and for each eight bytes
 * that smaller stores of one thread have filled; in the context of the storing
 * thread, with all asynchronous signals held off.
 *
 * @param [in]  arg     Owner's argument, as given to @ref emu_uar_page_create.
 * @param [in]  offset  Offset of the store inside the page.
 * @param [in]  value   First eight bytes stored, in memory order.
 * @param [in]  size    Number of bytes stored, eight or more.
 */
typedef void (*emu_uar_store_func_t)(void *arg, unsigned offset, uint64_t value,
                                     unsigned size);


/**
 * Create a page.
 *
 * @param [in]  func    Called for each store.
 * @param [in]  arg     Argument of @a func.
 * @param [out] page_p  Address of the page.
 *
 * @return 0 on success, otherwise a value of errno.
 */
int emu_uar_page_create(emu_uar_store_func_t func, void *arg, void **page_p);


/**
 * Destroy a page. Stores to it are ignored from now on, until it is reused.
 */
void emu_uar_page_destroy(void *page);

#endif
