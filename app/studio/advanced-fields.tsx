import type { ModelManifest } from '../../lib/contract/manifest';
import { type Backend, backends } from '../../lib/contract/prediction';
import type { FormValues } from './form-state';
import { Problem } from './problem';
import type { ModelList } from './use-models';

const backendNames: Readonly<Record<Backend, string>> = {
  webgpu: 'WebGPU',
  wasm: 'CPU',
};

/** Which model, and where it runs. */
export function AdvancedFields(props: {
  list: ModelList;
  model: ModelManifest | undefined;
  backend: Backend;
  onChange: (values: Partial<FormValues>) => void;
}) {
  const { list, model, backend, onChange } = props;
  return (
    <>
      <div className="field">
        <label htmlFor="model">Model</label>
        <select
          id="model"
          value={model?.id ?? ''}
          disabled={list.status !== 'ready'}
          aria-describedby="model-hint"
          onChange={(event) => onChange({ model: event.target.value })}
        >
          {list.status === 'ready' ? (
            list.models.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))
          ) : (
            <option value="">{list.status === 'loading' ? 'Loading …' : 'None'}</option>
          )}
        </select>
        <p className="field-hint" id="model-hint">
          {model && `Licence: ${model.licence.name}.`}
        </p>
        {list.status === 'failed' && <Problem error={list.error} />}
      </div>
      <fieldset className="field">
        <legend>Backend</legend>
        <div className="choices">
          {backends.map((name) => (
            <label key={name} className="choice">
              <input
                type="radio"
                name="backend"
                value={name}
                checked={backend === name}
                onChange={() => onChange({ backend: name })}
              />
              <span>{backendNames[name]}</span>
            </label>
          ))}
        </div>
        <p className="field-hint">The CPU works everywhere; a real GPU is far faster.</p>
      </fieldset>
    </>
  );
}
