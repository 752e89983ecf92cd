// Registers of NEON, which every aarch64 has. Internal linkage: for files compiled with TONARI_NEON only.
#pragma once

#include <arm_neon.h>

#include "simd/generic.hpp"

namespace tonari {
namespace {

struct Neon : Generic {
  static constexpr int registers = 32;
  using F32 = Raw<float, 4>;
  using F64 = Raw<double, 2>;

  template <class M, class R>
  static R choose(M truth, R yes, R no) {
    if constexpr (sizeof(R) == 16) {
      const auto mask = reinterpret_cast<uint8x16_t>(truth);
      return reinterpret_cast<R>(vbslq_u8(mask, reinterpret_cast<uint8x16_t>(yes), reinterpret_cast<uint8x16_t>(no)));
    } else {
      return Generic::choose(truth, yes, no);
    }
  }

  template <int BYTES, int N>
  static std::uint32_t bits(Truth<BYTES, N> truth) {
    if constexpr (BYTES == 4 && N == 4) {
      const uint32x4_t lanes = {1, 2, 4, 8};
      return vaddvq_u32(vandq_u32(reinterpret_cast<uint32x4_t>(truth), lanes));
    } else if constexpr (BYTES == 8 && N == 2) {
      const uint64x2_t lanes = {1, 2};
      return static_cast<std::uint32_t>(vaddvq_u64(vandq_u64(reinterpret_cast<uint64x2_t>(truth), lanes)));
    } else {
      return Generic::bits<BYTES, N>(truth);
    }
  }

  using Generic::fma, Generic::sqrt;
  static F32 fma(F32 a, F32 b, F32 c) { return vfmaq_f32(c, a, b); }
  static F64 fma(F64 a, F64 b, F64 c) { return vfmaq_f64(c, a, b); }
  static F32 sqrt(F32 a) { return vsqrtq_f32(a); }
  static F64 sqrt(F64 a) { return vsqrtq_f64(a); }

  template <class T, int N, class Stored>
  static Raw<T, N> load(const Stored* from) {
    if constexpr (N == 4 && std::is_same_v<T, float> && sizeof(Stored) == 1) {
      return vcvtq_f32_s32(widened<N>(from));
    } else if constexpr (N == 2 && std::is_same_v<T, double> && sizeof(Stored) == 1) {
      return vcvtq_f64_s64(vmovl_s32(vget_low_s32(widened<N>(from))));
    } else if constexpr (N == 4 && std::is_same_v<T, float> && std::is_same_v<Stored, Float16>) {
      return floats<N>(from);
    } else if constexpr (N == 2 && std::is_same_v<T, double> && std::is_same_v<Stored, Float16>) {
      return vcvt_f64_f32(vget_low_f32(floats<N>(from)));
    } else {
      return Generic::load<T, N>(from);
    }
  }

  template <class T, int N, class Stored>
  static void store(Stored* to, Raw<T, N> values) {
    if constexpr (N == 2 && std::is_same_v<T, double> && sizeof(Stored) == 1) {
      const int32x2_t whole = vmovn_s64(vcvtq_s64_f64(values));
      const int16x4_t narrow = vmovn_s32(vcombine_s32(whole, whole));
      const uint16x4_t packed = vreinterpret_u16_s8(vmovn_s16(vcombine_s16(narrow, narrow)));
      const std::uint16_t pair = vget_lane_u16(packed, 0);
      std::memcpy(to, &pair, sizeof pair);
    } else {
      Generic::store<T, N>(to, values);
    }
  }

 private:
  // Converts N bytes to int32; lanes after the first N are zeros.
  template <int N, class Stored>
  static int32x4_t widened(const Stored* from) {
    std::uint64_t packed = 0;
    std::memcpy(&packed, from, N);
    if constexpr (std::is_signed_v<Stored>) return vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(packed))));
    else return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(packed)))));
  }
  // Converts N values of float16 to float32; lanes after the first N are zeros.
  template <int N>
  static float32x4_t floats(const Float16* from) {
    std::uint64_t packed = 0;
    std::memcpy(&packed, from, N * sizeof(Float16));
    return vcvt_f32_f16(vcreate_f16(packed));
  }
};

}  // namespace
}  // namespace tonari
