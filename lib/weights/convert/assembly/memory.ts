/** Weights that are converted per call: few enough for the first-level cache of a processor. */
export const chunkElements: i32 = 4096;

/** Two f64: Σ (w − ŵ)² and Σ w². Kernels add to them. */
export const sums: usize = memory.data(16, 16);
/** Elements as the file has them: at most 4 bytes each. */
export const source: usize = memory.data(4 * 4096, 16);
/** Elements as f32. */
export const floats: usize = memory.data(4 * 4096, 16);
/** The result's integers: at most a byte per element. */
export const values: usize = memory.data(4096, 16);
/** The result's scales: an f32 per block of 32. */
export const scales: usize = memory.data(4096 / 8, 16);
