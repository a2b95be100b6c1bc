import { type Backend, backends } from '../../lib/contract/prediction';

const backendNames: Readonly<Record<Backend, string>> = { webgpu: 'WebGPU', wasm: 'CPU' };

/** Where the model's graphs run. */
export function BackendField(props: { backend: Backend; onChange: (backend: Backend) => void }) {
  return (
    <fieldset className="field">
      <legend>Backend</legend>
      <div className="choices">
        {backends.map((name) => (
          <label key={name} className="choice">
            <input
              type="radio"
              name="backend"
              value={name}
              checked={props.backend === name}
              onChange={() => props.onChange(name)}
            />
            <span>{backendNames[name]}</span>
          </label>
        ))}
      </div>
      <p className="field-hint">The CPU works everywhere; a real GPU is far faster.</p>
    </fieldset>
  );
}
