/** Geometry of an attention kernel: a workgroup handles `queries` rows, `keys` keys at a time. */
export interface AttentionVariant {
  readonly queries: number;
  readonly keys: number;
  /** How tiles lie in workgroup memory; f16 needs the feature `shader-f16`. */
  readonly shared: 'f32' | 'f16';
}
