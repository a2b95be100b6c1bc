import Link from 'next/link';
import type { ErrorRecord } from '../../lib/contract/errors';
import type { ModelEntry } from '../../lib/contract/library';
import { type Backend, backends } from '../../lib/contract/prediction';
import { describedBy, FieldNotes } from '../studio/field';
import { ModelField } from '../studio/model-field';
import type { ModelList } from '../studio/use-models';
import type { ConnectValues } from './use-connect';

const backendNames: Readonly<Record<Backend, string>> = { webgpu: 'WebGPU', wasm: 'CPU' };

/** What this tab connects with; while it is connected nothing can be changed. */
export function ConnectForm(props: {
  values: ConnectValues;
  change: (values: Partial<ConnectValues>) => void;
  models: ModelList;
  model: ModelEntry | undefined;
  tokenError: ErrorRecord | null;
  connected: boolean;
  onConnect: () => void;
}) {
  const { values, change, models, model, tokenError, connected, onConnect } = props;
  const error = tokenError ? `${tokenError.message} ${tokenError.remedy}` : undefined;
  return (
    <form
      className="panel connect"
      aria-labelledby="connect-title"
      onSubmit={(event) => {
        event.preventDefault();
        onConnect();
      }}
    >
      <h2 id="connect-title">Connect this tab</h2>
      <fieldset disabled={connected}>
        <div className="field">
          <label htmlFor="token">Worker token</label>
          <input
            id="token"
            type="password"
            autoComplete="off"
            spellCheck={false}
            value={values.token}
            {...describedBy('token', error, true)}
            onChange={(event) => change({ token: event.target.value })}
          />
          <FieldNotes
            id="token"
            error={error}
            hint={
              <>
                From the{' '}
                <Link href="/keys" prefetch={false}>
                  Keys page
                </Link>
                , or from what the server printed at its first start.
              </>
            }
          />
          <label className="check">
            <input
              type="checkbox"
              checked={values.remember}
              onChange={(event) => change({ remember: event.target.checked })}
            />
            Remember it in this browser, and connect again after a reload
          </label>
        </div>
        <div className="field">
          <label htmlFor="name">Name of this worker</label>
          <input
            id="name"
            type="text"
            maxLength={100}
            required
            value={values.name}
            onChange={(event) => change({ name: event.target.value })}
          />
        </div>
        <ModelField list={models} model={model} onChange={(id) => change({ model: id })} />
        <fieldset className="field">
          <legend>Backend</legend>
          <div className="choices">
            {backends.map((name) => (
              <label key={name} className="choice">
                <input
                  type="radio"
                  name="backend"
                  value={name}
                  checked={values.backend === name}
                  onChange={() => change({ backend: name })}
                />
                <span>{backendNames[name]}</span>
              </label>
            ))}
          </div>
          <p className="field-hint">The CPU works everywhere; a real GPU is far faster.</p>
        </fieldset>
        {!connected && (
          <button type="submit" className="primary" disabled={!model?.ready}>
            Connect
          </button>
        )}
      </fieldset>
    </form>
  );
}
