import { useCallback, useEffect, useRef, useState } from 'react';
import { type ErrorRecord, toKinoraError } from '../../lib/contract/errors';
import type { ModelEntry } from '../../lib/contract/library';
import type { Backend } from '../../lib/contract/prediction';
import { sizes } from '../../lib/contract/request';
import type { ServeOptions } from '../../lib/worker/api';
import { browserName, recall, remember } from './remembered';
import { checkToken, getServing } from './serving-store';

/** The fields of the form. */
export interface ConnectValues {
  readonly token: string;
  readonly remember: boolean;
  readonly name: string;
  /** Empty until one was chosen. */
  readonly model: string;
  readonly backend: Backend;
}

const blank: ConnectValues = { token: '', remember: false, name: '', model: '', backend: 'webgpu' };

/**
 * The form that connects: its values, kept in this browser, and what it does.
 *
 * @param model the chosen model; undefined while the library opens
 * @param hub where adapters come from; null while the library opens
 */
export function useConnect(pick: (id: string) => ModelEntry | undefined, hub: string | null) {
  const [values, setValues] = useState(blank);
  const [tokenError, setTokenError] = useState<ErrorRecord | null>(null);
  const again = useRef(false);
  useEffect(() => {
    const kept = recall();
    const name = kept?.name || browserName(navigator.userAgent);
    const { token = null, model = '', backend = 'webgpu', connected = false } = kept ?? {};
    setValues({ token: token ?? '', remember: token !== null, name, model, backend });
    again.current = connected && token !== null;
  }, []);

  const change = useCallback((changed: Partial<ConnectValues>) => {
    setValues((before) => ({ ...before, ...changed }));
    setTokenError(null);
  }, []);

  const model = pick(values.model);
  const connect = useCallback(() => {
    if (!model?.ready || hub === null) return;
    try {
      const token = checkToken(values.token);
      keep(values, model, true);
      const { name, backend } = values;
      void getServing().connect({ ...optionsOf(model, backend, hub), token, name: name.trim() });
    } catch (thrown) {
      setTokenError(toKinoraError(thrown).toRecord());
    }
  }, [values, model, hub]);

  const disconnect = useCallback(() => {
    if (model) keep(values, model, false);
    getServing().disconnect();
  }, [values, model]);

  useEffect(() => {
    // It was connected when the page was left, and the token was to be remembered.
    if (!again.current || !model?.ready || hub === null) return;
    again.current = false;
    connect();
  }, [model, hub, connect]);

  return { values, change, connect, disconnect, model, tokenError };
}

/** Everything of a connection that is not a person's to say. */
export function optionsOf(
  { manifest, precision }: ModelEntry,
  backend: Backend,
  hub: string,
): Omit<ServeOptions, 'token' | 'name'> {
  return {
    server: window.location.origin,
    model: manifest.id,
    precision: precision ?? manifest.precision,
    sizes: sizes.filter((size) => manifest.nativeSizes[size]),
    backend,
    hub,
  };
}

function keep(values: ConnectValues, model: ModelEntry, connected: boolean): void {
  const { name, backend } = values;
  const token = values.remember ? values.token.trim() : null;
  remember({ token, name, model: model.manifest.id, backend, connected });
}
