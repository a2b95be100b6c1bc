export * from './checkpoint';
export * from './http-folder';
export * from './quantise';
export * from './safetensors';
export * from './source';
