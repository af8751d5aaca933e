/* The peer by hand: eight replications at once, one per lane of an AVX2 register, everything in float32.
 *
 *   gcc -O3 -mavx2 -mfma avx2.c -o avx2 -lm
 *   avx2 <bge|belog|ucb|ucb-sqrt> ARMS HORIZON GROUPS PARAMETER SEED        (a group is 8 replications)
 *
 * Bernoulli arms, mean 0.51 for arm 0 and 0.50 for the others. Rounds count from 1; every arm is pulled once first,
 * in order of its index; then the largest score is pulled, the first one where scores tie:
 *
 *   bge    mean + C / sqrt(pulls) * Z            Z Gumbel at location +gamma
 *   belog  mean + c / log(t) * Z                 (the location cancels, so it is left out)
 *   ucb    mean + C * sqrt(log(t) / pulls)       as C / sqrt(pulls), kept with the arm, times sqrt(log(t))
 *   ucb-sqrt  the same, with a division and a square root for every arm and round, as the formula is printed
 *
 * Prints one line of JSON. Times are CPU time of the process, table and seeding included.
 */
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LANES 8
#define TOGETHER 2 /* groups played in turn: one's arithmetic fills the wait for the other's pulled arms */
#define EULER_GAMMA 0.5772156649015329f
#define BEST 0.51
#define OTHERS 0.50

typedef float v8f __attribute__((vector_size(32)));
typedef int32_t v8i __attribute__((vector_size(32)));
typedef uint32_t v8u __attribute__((vector_size(32)));

typedef enum { BGE, BELOG, UCB, UCB_SQRT } Policy;

/* (arms, lanes) arrays. `location` and `scale` are all that the scores read; they change on a pull only. */
typedef struct {
    v8u random[4];
    v8f *location, *scale, *pulls, *sum, *noise;
} Group;

/* A lane's sign bit decides, so that a comparison's result or a negative integer will do. */
static inline v8f pick(v8i mask, v8f yes, v8f no) { return _mm256_blendv_ps(no, yes, (v8f)mask); }

static inline v8u rotate(v8u x, int k) { return (x << k) | (x >> (32 - k)); }

/* xoshiro128++ of Blackman and Vigna, one generator per lane. */
static inline v8u next(v8u s[4]) {
    v8u result = rotate(s[0] + s[3], 7) + s[0], t = s[1] << 9;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 11);
    return result;
}

/* A Gumbel variable at location 0: -log(E) with E = -log(1 - v) and v uniform, on 31 bits and a half.
 *
 * Both logarithms split their argument into 2^e and a factor that a polynomial takes, fitted for this file (minimax).
 * E: with the factor 1 - g in [sqrt(1/2), sqrt(2)), -log(1 - g) = g q(g) to a relative 1.1e-6. Large noise comes from
 * small v, where 1 - v has lost v's digits; but there e = 0 and g is v itself, so the upper tail is right to 2^-32.
 * Outside, an absolute error of 1e-5 is enough and saves a sixth of the time: the factor is the mantissa, in [1, 2),
 * and the polynomial takes it as it is, its constant absorbing the exponent's bias. The lower tail ends at -2.8, where
 * float32 has no number between v and 1: it is thinner than exp(-exp(2.8)) = 7e-8 there. */
static inline v8f gumbel(v8u word) {
    const float ln2 = 0.69314718f, almost_2_to_minus_31 = 0x1.fffffep-32f; /* v < 1, whatever the rounding */
    const int32_t root_half = 0x3f3504f3, mantissa = 0x7fffff, one = 0x3f800000;
    v8f v = __builtin_convertvector((v8i)(word >> 1), v8f) * almost_2_to_minus_31 + 0x1p-32f;
    v8i bits = (v8i)(1.0f - v) - root_half; /* negative just where e is */
    v8f e = __builtin_convertvector(bits >> 23, v8f);
    v8f g = pick(bits, 1.0f - (v8f)((bits & mantissa) + root_half), v);
    v8f q = 0.118961069f * g + 0.186678601f;
    q = q * g + 0.20496331f;
    q = q * g + 0.249097437f;
    q = q * g + 0.333145088f;
    q = q * g + 0.500011129f;
    q = q * g + 1.00000097f;
    bits = (v8i)(q * g + e * -ln2);
    e = __builtin_convertvector(bits >> 23, v8f);
    v8f m = (v8f)((bits & mantissa) | one);
    q = 0.0178077068f * m - 0.190718614f;
    q = q * m + 0.878160929f;
    q = q * m - 2.27804844f;
    q = q * m + 3.70278515f;
    q = q * m - 4.23718344f;
    return q * m + (90.136887f - e * ln2);
}

/* The arm of the largest score in every lane. `factor` is what round t contributes: c / log(t), sqrt(log(t)) or C^2 log(t).
 * Noise first, scores after: in one loop both together take a fifth longer. */
static inline v8i choose(Policy policy, Group *group, int arms, float factor) {
    if (policy == BGE || policy == BELOG) {
        v8u s[4] = {group->random[0], group->random[1], group->random[2], group->random[3]};
        for (int i = 0; i < arms; i++) group->noise[i] = gumbel(next(s));
        memcpy(group->random, s, sizeof s);
    }
    v8f best = _mm256_set1_ps(-INFINITY);
    v8i arm = {0};
    for (int i = 0; i < arms; i++) {
        v8f score = group->location[i];
        if (policy == BGE) score += group->scale[i] * group->noise[i];
        if (policy == BELOG) score += factor * group->noise[i];
        if (policy == UCB) score += factor * group->scale[i];
        if (policy == UCB_SQRT) score += _mm256_sqrt_ps(factor / group->pulls[i]);
        arm = (v8i)pick(score > best, (v8f)_mm256_set1_epi32(i), (v8f)arm);
        best = _mm256_max_ps(score, best);
    }
    return arm;
}

/* Draws the reward of every lane's arm and updates that arm alone: gathered, computed as vectors, stored one by one. */
static inline void pull(Policy policy, Group *group, v8i arm, const int32_t *threshold, float parameter) {
    v8i where = arm * LANES + (v8i){0, 1, 2, 3, 4, 5, 6, 7};
    v8i bar = (v8i)_mm256_i32gather_epi32(threshold, (__m256i)arm, 4);
    v8i won = (v8i)(next(group->random) >> 1) < bar;
    v8f reward = (v8f)(won & (v8i)_mm256_set1_ps(1.0f));
    v8f pulls = _mm256_i32gather_ps((float *)group->pulls, (__m256i)where, 4) + 1.0f;
    v8f sum = _mm256_i32gather_ps((float *)group->sum, (__m256i)where, 4) + reward;
    v8f scale = parameter / _mm256_sqrt_ps(pulls);
    v8f location = sum / pulls;
    if (policy == BGE) location += EULER_GAMMA * scale; /* the noise's location, paid once a pull instead of K times */
    for (int lane = 0; lane < LANES; lane++) {
        int k = where[lane];
        ((float *)group->pulls)[k] = pulls[lane];
        ((float *)group->sum)[k] = sum[lane];
        ((float *)group->location)[k] = location[lane];
        if (policy == BGE || policy == UCB) ((float *)group->scale)[k] = scale[lane];
    }
}

/* `always_inline` with a constant policy: one loop is compiled per policy, and no test of it is left inside. */
static inline __attribute__((always_inline)) void play(Policy policy, Group *groups, int count, int arms, int horizon,
                                                       float parameter, const int32_t *threshold,
                                                       const float *factor) {
    for (int t = 1; t <= horizon; t++)
        for (int g = 0; g < count; g++) {
            v8i arm = t <= arms ? (v8i)_mm256_set1_epi32(t - 1) : choose(policy, &groups[g], arms, factor[t]);
            pull(policy, &groups[g], arm, threshold, parameter);
        }
}

static uint64_t splitmix64(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void *allocate(size_t size) {
    void *memory = aligned_alloc(32, (size + 31) / 32 * 32);
    if (!memory) {
        fprintf(stderr, "out of memory: %zu bytes\n", size);
        exit(1);
    }
    return memory;
}

static void reset(Group *group, int arms, uint64_t *seed) {
    for (int lane = 0; lane < LANES; lane++)
        for (int half = 0; half < 4; half += 2) {
            uint64_t word = splitmix64(seed);
            group->random[half][lane] = (uint32_t)word;
            group->random[half + 1][lane] = (uint32_t)(word >> 32);
        }
    memset(group->pulls, 0, (size_t)arms * sizeof(v8f));
    memset(group->sum, 0, (size_t)arms * sizeof(v8f));
}

int main(int argc, char **argv) {
    const char *names[] = {"bge", "belog", "ucb", "ucb-sqrt"};
    int policy = 0;
    while (argc == 7 && policy < 4 && strcmp(argv[1], names[policy])) policy++;
    if (argc != 7 || policy == 4) {
        fprintf(stderr, "usage: avx2 <bge|belog|ucb|ucb-sqrt> ARMS HORIZON GROUPS PARAMETER SEED\n");
        return 2;
    }
    int arms = atoi(argv[2]), horizon = atoi(argv[3]), count = atoi(argv[4]);
    float parameter = strtof(argv[5], NULL);
    uint64_t seed = strtoull(argv[6], NULL, 10);
    if (arms < 1 || horizon < arms || horizon > 1 << 24 || count < 1) { /* float32 counts exactly to 2^24 */
        fprintf(stderr, "need 1 <= ARMS <= HORIZON <= 2^24 and GROUPS >= 1\n");
        return 2;
    }
    struct timespec start, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);

    int32_t *threshold = allocate((size_t)arms * sizeof *threshold);
    for (int i = 0; i < arms; i++) threshold[i] = (int32_t)((i ? OTHERS : BEST) * 0x1p31);
    float *factor = allocate(((size_t)horizon + 1) * sizeof *factor);
    for (int t = 2; t <= horizon; t++) {
        float log_t = logf(t);
        factor[t] = policy == UCB ? sqrtf(log_t) : policy == UCB_SQRT ? parameter * parameter * log_t : parameter / log_t;
    }
    Group groups[TOGETHER];
    for (int g = 0; g < TOGETHER; g++) {
        groups[g].location = allocate((size_t)arms * sizeof(v8f));
        groups[g].scale = allocate((size_t)arms * sizeof(v8f));
        groups[g].pulls = allocate((size_t)arms * sizeof(v8f));
        groups[g].sum = allocate((size_t)arms * sizeof(v8f));
        groups[g].noise = allocate((size_t)arms * sizeof(v8f));
    }
    double regret = 0;
    for (int done = 0; done < count; done += TOGETHER) {
        int now = count - done < TOGETHER ? count - done : TOGETHER;
        for (int g = 0; g < now; g++) reset(&groups[g], arms, &seed);
        if (policy == BGE) play(BGE, groups, now, arms, horizon, parameter, threshold, factor);
        if (policy == BELOG) play(BELOG, groups, now, arms, horizon, parameter, threshold, factor);
        if (policy == UCB_SQRT) play(UCB_SQRT, groups, now, arms, horizon, parameter, threshold, factor);
        if (policy == UCB) play(UCB, groups, now, arms, horizon, parameter, threshold, factor);
        for (int g = 0; g < now; g++)
            for (int lane = 0; lane < LANES; lane++) regret += (BEST - OTHERS) * (horizon - groups[g].pulls[0][lane]);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double seconds = (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
    double replications = (double)count * LANES;
    printf("{\"policy\": \"%s\", \"arms\": %d, \"horizon\": %d, \"replications\": %.0f, \"cpu_seconds\": %.6f, "
           "\"ns_per_round\": %.4f, \"mean_regret\": %.4f}\n",
           names[policy], arms, horizon, replications, seconds, 1e9 * seconds / (replications * horizon),
           regret / replications);
}
