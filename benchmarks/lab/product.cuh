// A step of a product of 16-bit floats on Hopper: what `steps.cu`, `operands.cu` and `shared_memory.cu` multiply, and how
// they tell time.

#pragma once

#include <cstdint>

constexpr int kRows = 128, kDepth = 64, kThreads = 256, kInner = 16;  // of a tile; of one product instruction

#define SIXTY_FOUR(d, i)                                                                                           \
  EIGHT(d, i), EIGHT(d, i + 8), EIGHT(d, i + 16), EIGHT(d, i + 24), EIGHT(d, i + 32), EIGHT(d, i + 40),            \
      EIGHT(d, i + 48), EIGHT(d, i + 56)
#define EIGHT(d, i)                                                                                                \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]),      \
      "+f"(d[i + 7])

// One warpgroup's 64 rows by all columns of the tile, 16 deep; operands as descriptors of shared memory.
template <int columns>
__device__ void multiply(float (&d)[columns / 2], uint64_t a, uint64_t b) {
  if constexpr (columns == 64) {
    asm volatile(
        "{.reg .pred add; setp.ne.b32 add, %34, 0;\n\t"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
        "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, add, 1, 1, 0, 1;}"
        : EIGHT(d, 0), EIGHT(d, 8), EIGHT(d, 16), EIGHT(d, 24)
        : "l"(a), "l"(b), "r"(1));
  } else if constexpr (columns == 128) {
    asm volatile(
        "{.reg .pred add; setp.ne.b32 add, %66, 0;\n\t"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
        "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,"
        "%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, %64, %65, add, 1, 1, 0, 1;}"
        : SIXTY_FOUR(d, 0)
        : "l"(a), "l"(b), "r"(1));
  } else {
    asm volatile(
        "{.reg .pred add; setp.ne.b32 add, %130, 0;\n\t"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
        "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,"
        "%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,%64,%65,%66,%67,%68,%69,"
        "%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,"
        "%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,"
        "%119,%120,%121,%122,%123,%124,%125,%126,%127}, %128, %129, add, 1, 1, 0, 1;}"
        : SIXTY_FOUR(d, 0), SIXTY_FOUR(d, 64)
        : "l"(a), "l"(b), "r"(1));
  }
}

__device__ long long nanoseconds() {
  long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

__device__ uint64_t descriptor(uint32_t shared, uint32_t leading) {  // rows of 128 B, swizzled, eight of them 1 KiB
  return (uint64_t(0x40000040) << 32) | (leading << 16) | ((shared >> 4) & 0x3fff);
}
