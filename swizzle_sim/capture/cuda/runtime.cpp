// Runs sampled workgroups of one kernel on the CPU and writes the global addresses of each, instruction by instruction.
//
//   threads of a workgroup   fibers, switched where a warp or the workgroup waits
//   accesses                 the compiler's calls for -fsanitize=thread; those inside the tensors are kept
//   an instruction           accesses of one statement under one path of calls, the k-th time since a barrier
//
// stdin: int64 counts and places, with given items. stdout: the result, int64. Nothing else is open, and a filter of
// system calls leaves reading, writing and memory.
#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "shim.h"

#define OUTSIDE __attribute__((section("swz_constant")))  // what is no shared memory of the kernel's
OUTSIDE uint3 threadIdx = {1, 1, 1}, blockIdx = {1, 1, 1};
OUTSIDE dim3 blockDim(1, 1, 1), gridDim(1, 1, 1);
OUTSIDE int warpSize = 32;
alignas(128) char swz_dynamic[1 << 18];
extern "C" char __data_start, _end, __start_swz_constant, __stop_swz_constant;

namespace {
const uintptr_t ARENA = 1ull << 44;  // where the tensors begin
const int STACK = 1 << 17, RECENT = 8, PADDING = 64;
enum State { READY, IN_WARP, AT_BARRIER, DONE };

struct Event { uint64_t key; uintptr_t pc, caller, address; uint32_t size; bool is_write; };

struct Lane {
  uint3 thread;
  unsigned number;
  State state = DONE;
  bool started = false;
  jmp_buf at;
  ucontext_t first;
  uint64_t path = 0;
  std::vector<uint64_t> callers, places;  // paths of the calls below, and where they were made
  std::vector<Event> events;
  uintptr_t recent[RECENT] = {};
  unsigned next = 0;
  unsigned long long round = 0;
  char slot[16], shown[16];
};

struct Instruction { uint64_t key; uintptr_t pc, caller; unsigned turn; bool is_write; std::vector<std::pair<unsigned, Event>> lanes; };

std::vector<Lane> lanes;
Lane *now = nullptr;
jmp_buf scheduler;
char *stacks;
std::vector<int64_t> tensor_first, tensor_bytes;
uintptr_t arena_bytes = 0;
std::vector<char> touched;  // bytes of shared memory
std::vector<SwzArgument> arguments;
unsigned long long rounds = 0;

std::vector<int64_t> start{0}, first_byte, pattern_of, pattern_start{0}, pattern_head, pattern_lane;
std::unordered_map<std::string, int64_t> patterns;

void put(const void *data, size_t bytes) {
  for (const char *at = (const char *)data; bytes;) {
    ssize_t done = write(3, at, bytes);
    if (done <= 0) _exit(4);
    at += done, bytes -= done;
  }
}

void put(const std::vector<int64_t> &values) {
  int64_t count = values.size();
  put(&count, 8), put(values.data(), 8 * count);
}

[[noreturn]] void fail(int64_t kind, uintptr_t pc, int64_t where, const char *text) {
  int64_t caller = now && !now->places.empty() ? now->places.back() : 0;
  int64_t head[] = {-kind, (int64_t)pc, caller, where, (int64_t)blockIdx.x, (int64_t)blockIdx.y, (int64_t)blockIdx.z};
  put(head, sizeof head), put(text, strlen(text));
  _exit(3);
}

int tensor_at(uintptr_t offset) {  // the tensor whose bytes hold an offset, -1 for none
  for (size_t i = 0; i < tensor_first.size(); ++i)
    if ((int64_t)offset >= tensor_first[i] && (int64_t)offset < tensor_first[i] + tensor_bytes[i]) return i;
  return -1;
}

void touch(uintptr_t address, size_t bytes, bool is_write, uintptr_t pc) {
  uintptr_t offset = address - ARENA;
  if (offset >= arena_bytes) {
    uintptr_t at = address - (uintptr_t)&__data_start;
    if (at < touched.size())
      for (size_t i = 0; i < bytes && at + i < touched.size(); ++i) touched[at + i] = 1;
    return;
  }
  if (!now) return;
  int tensor = tensor_at(offset);
  if (tensor < 0 || tensor_at(offset + bytes - 1) != tensor) fail(is_write ? 2 : 1, pc, offset, "");
  if (is_write) {
    for (auto &one : now->recent) one = 0;
  } else {  // a value that was read by the statements just before is still in a register
    for (auto one : now->recent)
      if (one == (address << 5 | bytes)) return;
    now->recent[now->next++ % RECENT] = address << 5 | bytes;
  }
  now->events.push_back({(now->path * 1000003) ^ pc, pc, now->places.empty() ? 0 : now->places.back(), offset, (uint32_t)bytes, is_write});
}

void wait(State state) {
  now->state = state;
  if (!_setjmp(now->at)) _longjmp(scheduler, 1);
}

void body() {
  for (;;) {
    swz_entry(arguments.data(), arguments.size());
    wait(DONE);
  }
}

void run(Lane &lane) {
  now = &lane;
  threadIdx = lane.thread;
  if (!_setjmp(scheduler)) {
    if (lane.started) _longjmp(lane.at, 1);
    lane.started = true;
    getcontext(&lane.first);
    lane.first.uc_stack.ss_sp = stacks + (size_t)STACK * lane.number;
    lane.first.uc_stack.ss_size = STACK;
    makecontext(&lane.first, body, 0);
    setcontext(&lane.first);
  }
  now = nullptr;
}

void emit(const Instruction &one) {  // as one instruction for each tensor: its first byte and its pattern
  std::vector<int> of;
  for (auto &lane : one.lanes) of.push_back(tensor_at(lane.second.address));
  for (size_t tensor = 0; tensor < tensor_first.size(); ++tensor) {
    uintptr_t first = ~(uintptr_t)0;
    for (size_t i = 0; i < of.size(); ++i)
      if (of[i] == (int)tensor && one.lanes[i].second.address < first) first = one.lanes[i].second.address;
    if (first == ~(uintptr_t)0) continue;
    std::vector<int64_t> key{(int64_t)tensor, one.is_write};
    for (size_t i = 0; i < of.size(); ++i)
      if (of[i] == (int)tensor) {
        auto &event = one.lanes[i].second;
        key.insert(key.end(), {(int64_t)one.lanes[i].first, (int64_t)(event.address - first), (int64_t)event.size});
      }
    std::string text((const char *)key.data(), 8 * key.size());
    auto found = patterns.emplace(text, (int64_t)patterns.size());
    if (found.second) {
      pattern_head.insert(pattern_head.end(), {key[0], key[1], (int64_t)one.pc, (int64_t)one.caller});
      pattern_lane.insert(pattern_lane.end(), key.begin() + 2, key.end());
      pattern_start.push_back(pattern_lane.size() / 3);
    }
    first_byte.push_back(first), pattern_of.push_back(found.first->second);
  }
}

void flush() {  // the accesses since the last barrier, those of one statement and turn together, in program order
  std::list<Instruction> order;
  std::unordered_map<uint64_t, std::list<Instruction>::iterator> known;
  size_t longest = 0;
  for (size_t i = 0; i < lanes.size(); ++i)
    if (lanes[i].events.size() > lanes[longest].events.size()) longest = i;
  for (size_t step = 0; step <= lanes.size(); ++step) {
    size_t i = step ? step - 1 : longest;
    if (step && i == longest) continue;
    std::unordered_map<uint64_t, unsigned> turns;
    auto next = order.begin();
    for (auto &event : lanes[i].events) {
      unsigned turn = turns[event.key]++;
      if (next == order.end() || next->key != event.key || next->turn != turn) {
        uint64_t name = (event.key + turn * 0x9E3779B97F4A7C15ull) * 0xD6E8FEB86659FD93ull;
        auto at = known.find(name);
        next = at != known.end() ? at->second : order.insert(next, {event.key, event.pc, event.caller, turn, event.is_write, {}});
        if (at == known.end()) known[name] = next;
      }
      next->lanes.push_back({(unsigned)i, event});
      ++next;
    }
  }
  for (auto &one : order) {
    std::sort(one.lanes.begin(), one.lanes.end(), [](auto &a, auto &b) { return a.first < b.first; });
    emit(one);
  }
  for (auto &lane : lanes) {
    lane.events.clear();
    for (auto &one : lane.recent) one = 0;
  }
}

void run_warp(size_t first, size_t end) {
  for (;;) {
    for (size_t i = first; i < end; ++i)
      if (lanes[i].state == READY) run(lanes[i]);
    bool waiting = false;
    ++rounds;
    for (size_t i = first; i < end; ++i)
      if (lanes[i].state == IN_WARP) {
        memcpy(lanes[i].shown, lanes[i].slot, sizeof lanes[i].slot);
        lanes[i].round = rounds, lanes[i].state = READY, waiting = true;
      }
    if (!waiting) return;
  }
}

void run_workgroup() {
  for (auto &lane : lanes) lane.state = READY, lane.path = 0, lane.callers.clear(), lane.places.clear();
  for (bool alive = true; alive;) {
    for (size_t first = 0; first < lanes.size(); first += warpSize)
      run_warp(first, std::min(lanes.size(), first + warpSize));
    flush();
    alive = false;
    for (auto &lane : lanes)
      if (lane.state == AT_BARRIER) lane.state = READY, alive = true;
  }
}

void crashed(int, siginfo_t *what, void *) {
  fail(3, now && !now->events.empty() ? now->events.back().pc : 0, (int64_t)what->si_addr, "");
}

void close_down() {
#if defined(__x86_64__)
  const unsigned machine = AUDIT_ARCH_X86_64;
#else
  const unsigned machine = AUDIT_ARCH_AARCH64;
#endif
  const int allowed[] = {SYS_read, SYS_write, SYS_exit, SYS_exit_group, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_brk,
                         SYS_mremap, SYS_madvise, SYS_rt_sigaction, SYS_sigaltstack, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_futex, SYS_lseek,
                         SYS_clock_gettime, SYS_gettid, SYS_getpid, SYS_newfstatat, SYS_fstat};
  std::vector<sock_filter> code{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
                                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, machine, 1, 0),
                                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (int call : allowed) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1));
  sock_fprog program{(unsigned short)code.size(), code.data()};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
__attribute__((constructor(101))) void before_the_users_code() {
  dup2(1, 3), close(1);  // what a kernel prints is not the result
  if (open("/dev/null", O_WRONLY) == 1) close_down();
}

int64_t next() {
  int64_t value = 0;
  if (fread(&value, 8, 1, stdin) != 1) _exit(5);
  return value;
}

void prepare_memory(bool is_drawn) {  // zeros, or numbers above 1 in any type: 1 to 4096 in float, 1.9 to 8 in half
  arena_bytes = next();
  const size_t block = 1 << 21;
  size_t room = (arena_bytes + block - 1) / block * block;
  const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  if (mmap((void *)ARENA, room, PROT_READ | PROT_WRITE, how, -1, 0) != (void *)ARENA) fail(5, 0, room, "");
  uint32_t draw = 1;
  if (is_drawn)
    for (size_t i = 0; i < std::min(room, (size_t)1 << 28) / 2; ++i)
      ((uint16_t *)ARENA)[i] = 0x3f80 + ((draw = draw * 1664525 + 1013904223) >> 16) % 0x600;
  for (int64_t count = next(); count--;) {
    tensor_first.push_back(next()), tensor_bytes.push_back(next());
    int64_t kind = next();  // 0 as drawn, 1 given, 2 zeros
    if (kind == 2 && is_drawn) memset((void *)(ARENA + tensor_first.back()), 0, tensor_bytes.back());
    if (kind == 1 && fread((void *)(ARENA + tensor_first.back()), 1, tensor_bytes.back(), stdin) == 0) _exit(5);
  }
}

dim3 sides() { unsigned x = next(), y = next(); return dim3(x, y, next()); }

void prepare_lanes(dim3 block) {
  size_t threads = (size_t)block.x * block.y * block.z;
  stacks = (char *)mmap(0, threads * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  lanes.resize(threads);
  for (size_t i = 0; i < threads; ++i) {
    lanes[i].number = i;
    lanes[i].thread = {unsigned(i % block.x), unsigned(i / block.x % block.y), unsigned(i / block.x / block.y)};
  }
}
}  // namespace

extern "C" {
#define CALLER ((uintptr_t)__builtin_return_address(0))
#define READ_AND_WRITE(N) \
  void __tsan_read##N(void *at) { touch((uintptr_t)at, N, false, CALLER); } \
  void __tsan_write##N(void *at) { touch((uintptr_t)at, N, true, CALLER); } \
  void __tsan_unaligned_read##N(void *at) { touch((uintptr_t)at, N, false, CALLER); } \
  void __tsan_unaligned_write##N(void *at) { touch((uintptr_t)at, N, true, CALLER); } \
  void __tsan_volatile_read##N(void *at) { touch((uintptr_t)at, N, false, CALLER); } \
  void __tsan_volatile_write##N(void *at) { touch((uintptr_t)at, N, true, CALLER); }
READ_AND_WRITE(1)
READ_AND_WRITE(2)
READ_AND_WRITE(4)
READ_AND_WRITE(8)
READ_AND_WRITE(16)
void __tsan_read_range(void *at, size_t bytes) { touch((uintptr_t)at, bytes, false, CALLER); }
void __tsan_write_range(void *at, size_t bytes) { touch((uintptr_t)at, bytes, true, CALLER); }
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}
void __tsan_init() {}
void __tsan_func_entry(void *caller) {
  if (!now) return;
  now->callers.push_back(now->path), now->places.push_back((uintptr_t)caller);
  now->path = now->path * 31 + (uintptr_t)caller;
}
void __tsan_func_exit() {
  if (!now || now->callers.empty()) return;
  now->path = now->callers.back(), now->callers.pop_back(), now->places.pop_back();
}
static void copy(char *to, const char *from, size_t bytes) {
  if (to < from) for (size_t i = 0; i < bytes; ++i) to[i] = from[i];
  else for (size_t i = bytes; i--;) to[i] = from[i];
}
void *swz_copy(void *to, const void *from, size_t bytes) {
  if (bytes) touch((uintptr_t)from, bytes, false, CALLER), touch((uintptr_t)to, bytes, true, CALLER);
  copy((char *)to, (const char *)from, bytes);
  return to;
}
void *__tsan_memcpy(void *to, const void *from, size_t bytes) { return swz_copy(to, from, bytes); }
void *__tsan_memmove(void *to, const void *from, size_t bytes) { return swz_copy(to, from, bytes); }
void *__tsan_memset(void *to, int value, size_t bytes) {
  if (bytes) touch((uintptr_t)to, bytes, true, CALLER);
  for (size_t i = 0; i < bytes; ++i) ((volatile char *)to)[i] = value;
  return to;
}
}

void swz_barrier() { wait(AT_BARRIER); }
unsigned swz_lane() { return now->number % warpSize; }
void swz_exchange(const void *mine, void *found, unsigned bytes, int from) {
  memcpy(now->slot, mine, bytes);
  wait(IN_WARP);
  size_t other = now->number / warpSize * warpSize + from;
  if (from >= 0 && from < warpSize && other < lanes.size() && lanes[other].round == now->round)
    memcpy(found, lanes[other].shown, bytes);
}
bool swz_is_here(int lane) {  // whether a lane took part in the last exchange
  size_t other = now->number / warpSize * warpSize + lane;
  return other < lanes.size() && lanes[other].round == now->round;
}
void swz_refuse(const char *what, int line) { fail(4, 0, line, what); }
void *swz_pointer(int64_t offset) { return offset < 0 ? nullptr : (void *)(ARENA + offset); }

int main() {
  struct sigaction action = {};
  action.sa_sigaction = crashed, action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  static char apart[1 << 16];
  stack_t stack{apart, 0, sizeof apart};
  sigaltstack(&stack, nullptr);
  for (int one : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(one, &action, nullptr);
  prepare_memory(next());
  gridDim = sides();
  dim3 block = sides();
  warpSize = next();
  blockDim = block;
  prepare_lanes(block);
  for (int64_t count = next(); count--;) {
    SwzArgument one;
    one.kind = next(), one.whole = next();
    memcpy(&one.real, &one.whole, 8);
    arguments.push_back(one);
  }
  std::vector<int64_t> workgroups;
  for (int64_t count = next(); count--;) workgroups.push_back(next());
  touched.resize(&_end - &__data_start);
  for (int64_t w : workgroups) {
    blockIdx = {unsigned(w % gridDim.x), unsigned(w / gridDim.x % gridDim.y), unsigned(w / gridDim.x / gridDim.y)};
    run_workgroup();
    start.push_back(first_byte.size());
  }
  int64_t shared = 0, last = -1;
  for (int64_t i = 0; i < (int64_t)touched.size(); ++i) {
    char *at = &__data_start + i;
    bool is_outside = (at >= &__start_swz_constant && at < &__stop_swz_constant) ||
                      (at >= swz_dynamic && at < swz_dynamic + sizeof swz_dynamic);
    if (!touched[i] || is_outside) continue;
    shared += last >= 0 && i - last <= PADDING ? i - last : 1;
    last = i;
  }
  int64_t head[] = {1, shared};
  put(head, sizeof head);
  for (auto *one : {&start, &first_byte, &pattern_of, &pattern_start, &pattern_head, &pattern_lane}) put(*one);
  _exit(0);
}
