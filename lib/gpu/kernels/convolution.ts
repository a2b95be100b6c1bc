/** Geometry of a convolution: a workgroup computes `pixels × filters`, a thread `threadPixels × threadFilters` of them. */
export interface ConvolutionVariant {
  readonly pixels: number;
  readonly filters: number;
  readonly threadPixels: number;
  readonly threadFilters: number;
}
