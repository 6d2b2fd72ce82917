// A plain set-associative LRU cache, as fast as a few lines of C++ make it: the yardstick of benchmarks/evidence/speed/suite.py.
//
//     lru STREAM SETS        STREAM: uint32 lines, whose set is line mod SETS; prints hits and CPU seconds
//
// A set is a row of 16 words, the most recent first. It has no L1, no stores, no victims, no Infinity Cache, no time.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

constexpr int WAYS = 16;

#ifdef __AVX512F__
static inline bool touch(uint32_t* row, uint32_t line) {
    const __m512i there = _mm512_load_si512(row), wanted = _mm512_set1_epi32(static_cast<int>(line));
    const uint32_t found = _mm512_cmpeq_epi32_mask(there, wanted);
    const uint32_t until = found | (1u << (WAYS - 1));
    const auto moves = static_cast<__mmask16>(until ^ (until - 1));  // lanes 0 .. the way that gives up its place
    _mm512_mask_store_epi32(row, moves, _mm512_alignr_epi32(there, wanted, WAYS - 1));
    return found != 0;
}
#else
static inline bool touch(uint32_t* row, uint32_t line) {
    int way = 0;
    while (way < WAYS - 1 && row[way] != line) ++way;
    const bool hit = row[way] == line;
    for (; way > 0; --way) row[way] = row[way - 1];
    row[0] = line;
    return hit;
}
#endif

int main(int, char** arguments) {
    const uint32_t sets = static_cast<uint32_t>(std::atoi(arguments[2]));
    std::FILE* file = std::fopen(arguments[1], "rb");
    if (!file || !sets) return 1;
    std::fseek(file, 0, SEEK_END);
    std::vector<uint32_t> lines(static_cast<size_t>(std::ftell(file)) / sizeof(uint32_t));
    std::rewind(file);
    if (std::fread(lines.data(), sizeof(uint32_t), lines.size(), file) != lines.size()) return 1;
    auto* words = static_cast<uint32_t*>(std::aligned_alloc(64, sizeof(uint32_t) * WAYS * sets));
    for (size_t i = 0; i < static_cast<size_t>(sets) * WAYS; ++i) words[i] = UINT32_MAX;
    long hits = 0;
    const bool masked = (sets & (sets - 1)) == 0;
    const std::clock_t began = std::clock();
    if (masked)
        for (const uint32_t line : lines) hits += touch(words + WAYS * static_cast<size_t>(line & (sets - 1)), line);
    else
        for (const uint32_t line : lines) hits += touch(words + WAYS * static_cast<size_t>(line % sets), line);
    std::printf("%ld %.9f\n", hits, static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC);
    return 0;
}
