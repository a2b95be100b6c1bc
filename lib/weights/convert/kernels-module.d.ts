/** The compiled kernels of `assembly/`, base64. `npm run prepare:assets` writes the module. */
export const wasm: string;
