/** Geometry of a linear kernel: a workgroup computes `rows × columns`, a thread `threadRows × threadColumns` of them. */
export interface LinearVariant {
  readonly rows: number;
  readonly columns: number;
  readonly threadRows: number;
  readonly threadColumns: number;
  /** How tiles lie in workgroup memory; f16 needs the feature `shader-f16`. */
  readonly shared: 'f32' | 'f16';
}
