import type * as Ort from 'onnxruntime-web/webgpu';

/** ONNX Runtime's module; all entry points have the same surface. */
export type Runtime = typeof Ort;

let loading: Promise<Runtime> | undefined;

/**
 * The browser's build: JSPI where the browser can suspend WebAssembly (smaller, less overhead),
 * else Asyncify. Both carry the WebGPU and the CPU provider.
 */
export function browserRuntime(): Promise<Runtime> {
  loading ??= (
    'Suspending' in WebAssembly ? import('onnxruntime-web/jspi') : import('onnxruntime-web/webgpu')
  ).then((runtime) => {
    runtime.env.logLevel = 'error';
    return runtime as Runtime;
  });
  return loading;
}
