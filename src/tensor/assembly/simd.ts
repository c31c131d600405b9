// What the kernels share: sums over lanes and the exponential.

/** exp is exactly zero below this, so a page whose best score is further behind the maximum adds exactly nothing. */
export const EXP_MIN: f32 = -87.0;

// @ts-expect-error: decorator
@inline
export function word(address: usize): usize {
  return <usize>load<u32>(address);
}

/** The sums of four accumulators as four lanes, each (0 + 2) + (1 + 3). */
// @ts-expect-error: decorator
@inline
export function fold(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = f32x4.add(v128.shuffle<i32>(a, b, 0, 4, 1, 5), v128.shuffle<i32>(a, b, 2, 6, 3, 7));
  const cd = f32x4.add(v128.shuffle<i32>(c, d, 0, 4, 1, 5), v128.shuffle<i32>(c, d, 2, 6, 3, 7));
  return f32x4.add(v128.shuffle<i32>(ab, cd, 0, 1, 4, 5), v128.shuffle<i32>(ab, cd, 2, 3, 6, 7));
}

// @ts-expect-error: decorator
@inline
export function lanesSum(a: v128): f32 {
  return f32x4.extract_lane(a, 0) + f32x4.extract_lane(a, 2) + (f32x4.extract_lane(a, 1) + f32x4.extract_lane(a, 3));
}

/** e^x for any x up to 88, about 2 units in the last place; exactly 1 at 0, exactly 0 below EXP_MIN. */
// @ts-expect-error: decorator
@inline
export function exp4(x: v128): v128 {
  const live = f32x4.ge(x, f32x4.splat(EXP_MIN));
  const bounded = f32x4.max(x, f32x4.splat(EXP_MIN));
  const n = f32x4.nearest(f32x4.mul(bounded, f32x4.splat(1.44269504088896341)));
  let r = f32x4.sub(bounded, f32x4.mul(n, f32x4.splat(0.693359375)));
  r = f32x4.sub(r, f32x4.mul(n, f32x4.splat(-2.12194440e-4)));
  let p = f32x4.splat(1.9875691500e-4);
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(1.3981999507e-3));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(8.3334519073e-3));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(4.1665795894e-2));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(1.6666665459e-1));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(0.5));
  p = f32x4.add(f32x4.add(f32x4.mul(p, f32x4.mul(r, r)), r), f32x4.splat(1.0));
  const power = i32x4.shl(i32x4.add(i32x4.trunc_sat_f32x4_s(n), i32x4.splat(127)), 23);
  return v128.and(f32x4.mul(p, power), live);
}
