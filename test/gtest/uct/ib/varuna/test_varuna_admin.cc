/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The socket of rc_varuna_ctl, with clients that are idle, too many, misbehaving or
 * dead: others are served, and nothing leaks.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/iface/varuna_admin.h>
#include <uct/ib/varuna/iface/varuna_admin_proto.h>
#include <uct/ib/varuna/rc_varuna.h>
}

#include <dirent.h>
#include <poll.h>
#include <set>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <thread>

static volatile unsigned accepts;        /* Calls */
static volatile int      accept_error;   /* 0: none */

/* Also called by the plugin, which is linked with this program */
extern "C" int accept4(int fd, struct sockaddr *addr, socklen_t *length, int flags)
{
    __atomic_fetch_add(&accepts, 1, __ATOMIC_RELAXED);
    if (accept_error != 0) {
        errno = accept_error;
        return -1;
    }

    return syscall(SYS_accept4, fd, addr, length, flags);
}

class test_varuna_admin : public ucs::test {
protected:
    virtual void init()
    {
        char dir[] = "/tmp/test_varuna_admin.XXXXXX";

        ucs::test::init();
        ASSERT_TRUE(mkdtemp(dir) != NULL);
        m_dir        = dir;
        accept_error = 0;
        /* The async thread has its descriptors before they are counted */
        uct_varuna_admin_sock_start(m_dir.c_str());
        EXPECT_EQ(UCT_VARUNA_ADMIN_OK, ask("status"));
        m_descriptors = descriptors();
    }

    virtual void cleanup()
    {
        uct_varuna_admin_sock_stop();
        rmdir(m_dir.c_str());
        ucs::test::cleanup();
    }

    static unsigned descriptors()
    {
        DIR *dir       = opendir("/proc/self/fd");
        unsigned count = 0;

        while (readdir(dir) != NULL) {
            ++count;
        }
        closedir(dir);
        return count;
    }

    /* Ours and the plugin's */
    static void await_descriptors(unsigned most)
    {
        ucs_time_t deadline = ucs_get_time() + ucs_time_from_sec(60);

        while ((descriptors() > most) && (ucs_get_time() < deadline)) {
            usleep(1000);
        }
        EXPECT_LE(descriptors(), most);
    }

    /* All in the directory of the sockets, sorted */
    std::set<std::string> names() const
    {
        std::set<std::string> result;
        struct dirent *entry;
        DIR *dir = opendir(m_dir.c_str());

        while ((entry = readdir(dir)) != NULL) {
            if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) {
                result.insert(entry->d_name);
            }
        }
        closedir(dir);
        return result;
    }

    struct sockaddr_un addr_of(const std::string &name) const
    {
        struct sockaddr_un addr = {};

        addr.sun_family = AF_UNIX;
        snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", m_dir.c_str(), name.c_str());
        return addr;
    }

    int connect_to(int flags = 0)
    {
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | flags, 0);

        EXPECT_EQ(1u, names().size());
        struct sockaddr_un addr = addr_of(*names().begin());
        EXPECT_GE(fd, 0);
        EXPECT_EQ(0, connect(fd, (struct sockaddr*)&addr, sizeof(addr)))
                << strerror(errno);
        return fd;
    }

    /* A socket as of another process with our pid */
    int listen_at(const std::string &name) const
    {
        struct sockaddr_un addr = addr_of(name);
        int fd                  = socket(AF_UNIX, SOCK_SEQPACKET, 0);

        EXPECT_EQ(0, bind(fd, (struct sockaddr*)&addr, sizeof(addr)));
        EXPECT_EQ(0, listen(fd, 1));
        return fd;
    }

    /* The next packet, or "" at the end */
    static std::string receive(int fd)
    {
        char answer[UCT_VARUNA_ADMIN_ANSWER_MAX];
        struct pollfd pfd = {fd, POLLIN, 0};

        EXPECT_EQ(1, poll(&pfd, 1, 120000)) << "nothing comes";
        ssize_t length = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
        return std::string(answer, std::max<ssize_t>(length, 0));
    }

    /* Whether a client was left because we had no CPU. @a since: when it was connected */
    static bool was_too_slow(ucs_time_t since)
    {
        return ucs_time_to_sec(ucs_get_time() - since) >=
               (UCT_VARUNA_ADMIN_IDLE_TIME - UCT_VARUNA_ADMIN_CONN_TICK);
    }

    std::string ask(const std::string &request)
    {
        std::string answer;
        ucs_time_t start;
        ssize_t sent;

        do {
            start  = ucs_get_time();
            int fd = connect_to();
            sent   = send(fd, request.data(), request.size(), MSG_NOSIGNAL);
            answer = receive(fd);
            EXPECT_EQ("", receive(fd)); /* Closed */
            close(fd);
        } while (answer.empty() && was_too_slow(start));

        EXPECT_EQ((ssize_t)request.size(), sent);
        return answer;
    }

    std::string m_dir;
    unsigned    m_descriptors = 0;
};

UCS_TEST_F(test_varuna_admin, idle_client_is_left)
{
    ucs_time_t start = ucs_get_time();
    int fd           = connect_to();

    EXPECT_EQ(UCT_VARUNA_ADMIN_OK, ask("status")); /* It is accepted */
    EXPECT_EQ("", receive(fd));
    EXPECT_GE(ucs_time_to_sec(ucs_get_time() - start),
              UCT_VARUNA_ADMIN_IDLE_TIME - UCT_VARUNA_ADMIN_CONN_TICK);
    close(fd);
    await_descriptors(m_descriptors);
}

/* More clients than the limit: each new one is served at once */
UCS_TEST_F(test_varuna_admin, many_idle_clients)
{
    std::vector<int> fds;
    std::string answer;
    ucs_time_t start;

    for (unsigned i = 0; i < 4 * UCT_VARUNA_ADMIN_MAX_CONNS; ++i) {
        fds.push_back(connect_to());
        EXPECT_EQ(UCT_VARUNA_ADMIN_OK, ask("status"));
        EXPECT_LE(descriptors(),
                  m_descriptors + fds.size() + UCT_VARUNA_ADMIN_MAX_CONNS + 1);
    }

    /* The oldest ones were closed; the newest one works */
    EXPECT_EQ("", receive(fds.front()));
    do {
        start = ucs_get_time();
        fds.push_back(connect_to());
        EXPECT_EQ(UCT_VARUNA_ADMIN_OK, ask("status")); /* It is accepted */
        (void)send(fds.back(), "status", 6, MSG_NOSIGNAL);
        answer = receive(fds.back());
    } while (answer.empty() && was_too_slow(start));
    EXPECT_EQ(UCT_VARUNA_ADMIN_OK, answer);
    for (int fd : fds) {
        close(fd);
    }
    await_descriptors(m_descriptors);
}

UCS_TEST_F(test_varuna_admin, ten_thousand_connects)
{
    for (unsigned i = 0; i < 10000; ++i) {
        close(connect_to());
    }
    EXPECT_EQ(UCT_VARUNA_ADMIN_OK, ask("status"));
    await_descriptors(m_descriptors);
}

/* Clients that send requests, but never read the answers */
UCS_TEST_F(test_varuna_admin, clients_that_do_not_read)
{
    std::vector<int> fds;

    for (unsigned i = 0; i < 200; ++i) {
        fds.push_back(connect_to());
        EXPECT_EQ(6, send(fds.back(), "status", 6, MSG_NOSIGNAL));
    }
    EXPECT_EQ(UCT_VARUNA_ADMIN_OK, ask("status"));
    await_descriptors(m_descriptors + fds.size());
    for (int fd : fds) {
        close(fd);
    }
}

UCS_TEST_F(test_varuna_admin, requests_of_wrong_sizes)
{
    const std::string error = UCT_VARUNA_ADMIN_ERROR;
    const std::string longest(UCT_VARUNA_ADMIN_REQUEST_MAX - 1, ' ');

    /* It starts with a valid request, which must be ignored */
    EXPECT_EQ(0u, ask("status" + std::string(1, '\0') + "x").find(error));
    EXPECT_EQ(0u, ask("failover force" + std::string(1, '\0')).find(error));
    EXPECT_EQ(0u, ask(longest + " ").find(error + "a request is"));
    EXPECT_EQ(0u, ask(std::string(60000, 'x')).find(error + "a request is"));
    EXPECT_EQ(0u, ask(longest).find(error + "expected"));
    EXPECT_EQ(UCT_VARUNA_ADMIN_OK, ask("status\n"));

    int fd = connect_to();
    EXPECT_EQ(0, send(fd, "", 0, MSG_NOSIGNAL));
    EXPECT_EQ("", receive(fd));
    close(fd);
    await_descriptors(m_descriptors);
}

/* No descriptor is left for a waiting connection: the thread must not spin, and serves
 * the connection when there is one */
UCS_TEST_F(test_varuna_admin, no_descriptor_is_left)
{
    scoped_log_handler slh(hide_warns_logger);
    unsigned before, count;

    accept_error = EMFILE;
    before       = __atomic_load_n(&accepts, __ATOMIC_RELAXED);
    int fd       = connect_to();
    EXPECT_EQ(6, send(fd, "status", 6, MSG_NOSIGNAL));
    ucs_time_t start = ucs_get_time();
    while ((count = __atomic_load_n(&accepts, __ATOMIC_RELAXED) - before) < 3) {
        usleep(1000);
    }
    /* One at once, and one in each tick */
    EXPECT_GE(ucs_time_to_sec(ucs_get_time() - start), UCT_VARUNA_ADMIN_CONN_TICK);
    accept_error = 0;
    EXPECT_EQ(UCT_VARUNA_ADMIN_OK, receive(fd));
    close(fd);
    await_descriptors(m_descriptors);
}

/* The interface is closed while clients are connected */
UCS_TEST_F(test_varuna_admin, stop_with_clients)
{
    std::vector<int> fds;

    for (unsigned i = 0; i < UCT_VARUNA_ADMIN_MAX_CONNS / 2; ++i) {
        fds.push_back(connect_to());
    }
    EXPECT_EQ(UCT_VARUNA_ADMIN_OK, ask("status"));
    uct_varuna_admin_sock_stop();
    for (int fd : fds) {
        EXPECT_EQ("", receive(fd));
        close(fd);
    }
    EXPECT_LT(descriptors(), m_descriptors);
    uct_varuna_admin_sock_start(m_dir.c_str());
    EXPECT_EQ(UCT_VARUNA_ADMIN_OK, ask("status"));
}

UCS_TEST_F(test_varuna_admin, name_begins_with_the_pid)
{
    const std::string name = *names().begin(), pid = std::to_string(getpid()) + "-";

    EXPECT_EQ(pid, name.substr(0, pid.size()));
    EXPECT_EQ(pid.size() + 8 + strlen(UCT_VARUNA_ADMIN_SUFFIX), name.size());
    EXPECT_EQ(UCT_VARUNA_ADMIN_SUFFIX, name.substr(pid.size() + 8));

    /* Another one each time */
    uct_varuna_admin_sock_stop();
    uct_varuna_admin_sock_start(m_dir.c_str());
    EXPECT_EQ(0u, names().count(name));
}

/* Two processes with one pid share the directory: none removes the socket of the other one,
 * unless that one is dead */
UCS_TEST_F(test_varuna_admin, another_process_has_our_pid)
{
    const std::string name = std::to_string(getpid()) + "-77777777.sock";
    const std::string old  = std::to_string(getpid()) + ".sock"; /* Of an older version */
    int fd                 = listen_at(name);
    int old_fd             = listen_at(old);

    uct_varuna_admin_sock_stop();
    EXPECT_EQ((std::set<std::string>{name, old}), names());
    uct_varuna_admin_sock_start(m_dir.c_str());
    EXPECT_EQ(1u, names().count(name));
    EXPECT_EQ(1u, names().count(old));
    EXPECT_EQ(3u, names().size());

    close(fd);
    close(old_fd);
    uct_varuna_admin_sock_stop();
    uct_varuna_admin_sock_start(m_dir.c_str());
    EXPECT_EQ(1u, names().size());
    EXPECT_EQ(0u, names().count(name));
    EXPECT_EQ(UCT_VARUNA_ADMIN_OK, ask("status"));
}

/* Sockets of other pids are none of our business */
UCS_TEST_F(test_varuna_admin, a_dead_process_has_another_pid)
{
    const std::string name = std::to_string(getpid()) + "1-77777777.sock";

    close(listen_at(name));
    uct_varuna_admin_sock_stop();
    uct_varuna_admin_sock_start(m_dir.c_str());
    EXPECT_EQ(1u, names().count(name));
    unlink(addr_of(name).sun_path);
}

/* Our name is somebody else's now */
UCS_TEST_F(test_varuna_admin, only_its_own_socket_is_removed)
{
    const std::string name = *names().begin();
    int fd;

    ASSERT_EQ(0, unlink(addr_of(name).sun_path));
    fd = listen_at(name);
    uct_varuna_admin_sock_stop();
    EXPECT_EQ(1u, names().count(name));
    unlink(addr_of(name).sun_path);
    close(fd);
    uct_varuna_admin_sock_start(m_dir.c_str());
}

/* Each cause has a name, and what is none of them shows nothing */
UCS_TEST_F(test_varuna_admin, status_names_all_causes)
{
    const std::string expected[] = {"port", "heartbeat", "admin", "forced", "address", "nic"};
    uct_varuna_admin_t user      = {};
    const uint64_t fences[]      = {0, 5, 1, 2, 3, 4};
    char buffer[1024];

    user.num_links = 1;
    user.names[0]  = "fake:1";
    user.fences[0] = fences;
    user.wake      = [](void*) {};
    user.quiesce   = [](void*) {};
    uct_varuna_admin_register(&user);
    for (unsigned i = 0; i < 8; ++i) {
        std::string name = (i < UCT_VARUNA_LINK_NUM_CAUSES) ? expected[i] : "";

        user.links[0] = UCT_VARUNA_DAMP_DOWN | (UCS_BIT(i) << 8);
        rc_varuna_status(buffer, sizeof(buffer));
        EXPECT_TRUE(strstr(buffer, ("down_by=" + name + " flaps=0").c_str()) != NULL)
                << i << ": " << buffer;
    }
    EXPECT_TRUE(strstr(buffer, " fences_reset=5 fences_lifetime=10 lifetime_dc=1"
                       " lifetime_dead=2 lifetime_hung=3 lifetime_other=4"
                       " waits_for=-\n") != NULL)
            << buffer;
    uct_varuna_admin_unregister(&user);
}

/* NICs are removed and added by the name of their device, or of a port of it. The last one that is
 * up stays, and so does each if the process cannot open it again */
UCS_TEST_F(test_varuna_admin, nics)
{
    static int can_remove;
    const uint64_t fences[]       = {0, 0, 0, 0, 0, 0};
    uct_varuna_link_table_t table = {};
    uct_varuna_admin_t user       = {};
    char answer[256];

    auto command = [&](const std::string &line) {
        uct_varuna_admin_command(line.c_str(), answer, sizeof(answer));
        return std::string(answer);
    };
    auto refused = [&](const std::string &line, const std::string &text) {
        EXPECT_NE(std::string::npos, command(line).find(text)) << line << ": " << answer;
    };

    can_remove      = 1;
    user.num_links  = 3;
    user.names[0]   = "fake_0:1";
    user.names[1]   = "fake_0:2";
    user.names[2]   = "fake_1:1";
    user.fences[0]  = user.fences[1] = user.fences[2] = fences;
    user.wake       = [](void*) {};
    user.quiesce    = [](void*) {};
    user.can_remove = [](void*, unsigned) { return can_remove; };
    uct_varuna_link_table_init(&table, 3, 0, 1, 1);
    uct_varuna_admin_register(&user);
    refused("nic fake_2 remove", "no such NIC");
    refused("nic fake remove", "no such NIC");
    refused("nic fake_2 add", "no such NIC");
    refused("nic fake_0 add", "was not removed");
    refused("nic fake_0", "expected");
    refused("nic fake_0 fail", "expected");
    refused("nic " + std::string(99, 'x') + " remove", "expected");
    can_remove = 0;
    refused("nic fake_0 remove", "mode extended");
    can_remove = 1;
    EXPECT_EQ("ok\n", command("nic fake_0:2 remove"));
    refused("nic fake_0:1 remove", "is being removed");
    refused("nic fake_1 remove", "no other link");
    EXPECT_EQ(0x3u, uct_varuna_admin_sync(&user, &table, 1));
    EXPECT_EQ(0x3u, user.removed);
    EXPECT_TRUE(uct_varuna_link_is_retired(&table, 1));
    EXPECT_EQ(unsigned(UCT_VARUNA_LINK_CAUSE_NIC), table.links[0].causes);
    refused("nic fake_1 remove", "no other link");
    EXPECT_EQ("ok\n", command("nic fake_0 add"));
    refused("nic fake_0 add", "was not removed");
    (void)uct_varuna_admin_sync(&user, &table, 2);
    EXPECT_EQ(0u, user.removed);
    EXPECT_TRUE(uct_varuna_link_is_retired(&table, 1)) << "it is up when the NIC is back";
    uct_varuna_admin_unregister(&user);
}

/* A thread that closes a worker has the lock of its control plane, and may wait for the one that
 * answers: that does not wait */
UCS_TEST_F(test_varuna_admin, status_of_a_worker_that_is_being_closed)
{
    const uint64_t fences[]       = {0, 0, 0, 0, 0, 0};
    uct_varuna_admin_t user       = {};

    user.num_links  = 1;
    user.names[0]   = "fake:1";
    user.fences[0]  = fences;
    user.wake       = [](void*) {};
    user.quiesce    = [](void*) {};
    user.list_peers = [](void*, const char*, ucs_string_buffer_t *text) { return 0; };
    uct_varuna_admin_register(&user);
    char answer[256];
    uct_varuna_admin_command("status", answer, sizeof(answer));
    EXPECT_STREQ("error: the process is busy; ask again\n", answer);
    uct_varuna_admin_unregister(&user);
}

/* Who has the lock of the control plane may wait for the one of commands: a thread that makes
 * progress, or closes a worker */
UCS_TEST_F(test_varuna_admin, progress_does_not_wait_for_who_asks)
{
    static volatile int is_listing, has_synced;
    const uint64_t fences[]       = {0, 0, 0, 0, 0, 0};
    uct_varuna_link_table_t table = {};
    uct_varuna_admin_t user       = {};

    is_listing      = 0;
    has_synced      = 0;
    table.num_links = 1;
    user.num_links  = 1;
    user.names[0]   = "fake:1";
    user.fences[0]  = fences;
    user.wake       = [](void*) {};
    user.quiesce    = [](void*) {};
    user.list_peers = [](void*, const char*, ucs_string_buffer_t *text) {
        static ucs_time_t deadline;

        if (!is_listing) {
            deadline   = ucs_get_time() + ucs_time_from_sec(60);
            is_listing = 1;
        }
        ucs_string_buffer_appendf(text, has_synced ? "all" : "some");
        return (int)(has_synced || (ucs_get_time() > deadline));
    };
    uct_varuna_admin_register(&user);
    ASSERT_EQ(0, rc_varuna_failover(RC_VARUNA_FAILOVER_REVOKE));

    std::thread asker([]() {
        char buffer[1024];
        size_t length = rc_varuna_status(buffer, sizeof(buffer));
        EXPECT_EQ(strlen(buffer), length);
        EXPECT_TRUE(strstr(buffer, " waits_for=-\nall") != NULL) << buffer;
        EXPECT_TRUE(strstr(buffer, "some") == NULL) << buffer;
    });
    while (!is_listing) {
        usleep(1000);
    }
    uct_varuna_admin_sync(&user, &table, ucs_get_time());
    has_synced = 1;
    asker.join();
    EXPECT_FALSE(uct_varuna_admin_is_behind(&user));
    uct_varuna_admin_unregister(&user);
}
