import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import {
  type Backend,
  type ErrorRecord,
  type ModelEntry,
  sizes,
  toKinoraError,
} from '../../lib/contract';
import type { ServeOptions } from '../../lib/worker/api';
import { changeDevice, deviceOptions, useDevice } from '../shared/device';
import { backendOfRun, type GpuState, shownBackend } from '../shared/gpu';
import { askTerms } from '../shared/terms-store';
import { checkToken, getServing } from './serving-store';
import { browserName, loadSettings, saveSettings } from './settings';

/** Values of the form. */
export interface ConnectValues {
  readonly token: string;
  readonly remember: boolean;
  readonly name: string;
  /** Empty until a model is selected. */
  readonly model: string;
  /** A setting of this browser, the same as in the studio. */
  readonly backend: Backend;
}

const blank = { token: '', remember: false, name: '', model: '' };

/**
 * The values of the connect form, which are stored in this browser, and its actions.
 *
 * @param pick finds the selected model; returns undefined while the library is loading
 * @param hub base address for LoRAs; null while the library is loading
 * @param gpu decides what computes where nothing was chosen
 */
export function useConnect(
  pick: (id: string) => ModelEntry | undefined,
  hub: string | null,
  gpu: GpuState,
) {
  const [typed, setTyped] = useState(blank);
  const device = useDevice();
  const backend = shownBackend(device, gpu);
  const values: ConnectValues = useMemo(() => ({ ...typed, backend }), [typed, backend]);
  const [tokenError, setTokenError] = useState<ErrorRecord | null>(null);
  const reconnect = useRef(false);
  useEffect(() => {
    const stored = loadSettings();
    const name = stored?.name || browserName(navigator.userAgent);
    const { token = null, model = '', connected = false } = stored ?? {};
    setTyped({ token: token ?? '', remember: token !== null, name, model });
    reconnect.current = connected && token !== null;
  }, []);

  const change = useCallback((changed: Partial<ConnectValues>) => {
    changeDevice(changed);
    setTyped((before) => ({ ...before, ...changed }));
    setTokenError(null);
  }, []);

  const model = pick(values.model);
  const connect = useCallback(async () => {
    if (!model?.ready || hub === null) return;
    try {
      const token = checkToken(values.token);
      if (!(await askTerms())) return;
      save(values, model, true);
      void getServing().connect({
        ...optionsOf(model, hub),
        token,
        name: values.name.trim(),
        device: { backend: await backendOfRun(), ...deviceOptions() },
      });
    } catch (thrown) {
      setTokenError(toKinoraError(thrown).toRecord());
    }
  }, [values, model, hub]);

  const disconnect = useCallback(() => {
    if (model) save(values, model, false);
    getServing().disconnect();
  }, [values, model]);

  useEffect(() => {
    // The tab was connected when the page was closed, and the token is stored.
    if (!reconnect.current || !model?.ready || hub === null) return;
    reconnect.current = false;
    void connect();
  }, [model, hub, connect]);

  return { values, change, connect, disconnect, model, tokenError };
}

/** The options of a connection that follow from the model and the page. */
export function optionsOf(
  { manifest, precision }: ModelEntry,
  hub: string,
): Omit<ServeOptions, 'token' | 'name' | 'device'> {
  return {
    server: window.location.origin,
    model: manifest.id,
    precision: precision ?? manifest.precision,
    sizes: sizes.filter((size) => manifest.nativeSizes[size]),
    hub,
  };
}

function save(values: ConnectValues, model: ModelEntry, connected: boolean): void {
  const { name } = values;
  const token = values.remember ? values.token.trim() : null;
  saveSettings({ token, name, model: model.manifest.id, connected });
}
