import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { type Backend, type ModelEntry, sizes, toKinoraError } from '../../lib/contract';
import type { ServeOptions } from '../../lib/worker/api';
import { AdminError, admin } from '../keys/admin-client';
import { emptyForm, requestOf } from '../keys/keys-view';
import { changeDevice, deviceOptions, useDevice } from '../shared/device';
import { backendOfRun, type GpuState, shownBackend } from '../shared/gpu';
import { forgetSession, mayBeSignedIn } from '../shared/session';
import { askTerms } from '../shared/terms-store';
import { errorSentences, t } from '../texts';
import '../texts/en/keys';
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
  const [tokenError, setTokenError] = useState<string | null>(null);
  const [signedIn, setSignedIn] = useState(false);
  const reconnect = useRef(false);
  useEffect(() => {
    setSignedIn(mayBeSignedIn());
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
      const makes = signedIn && values.token.trim() === '';
      if (!makes) checkToken(values.token);
      if (!(await askTerms())) return;
      const made = makes && { token: await makeToken(values.name), remember: true };
      const kept = { ...values, ...made };
      setTyped(kept);
      save(kept, model, true);
      void getServing().connect({
        ...optionsOf(model, hub),
        token: kept.token.trim(),
        name: kept.name.trim(),
        device: { backend: await backendOfRun(), ...deviceOptions() },
      });
    } catch (thrown) {
      if (thrown instanceof AdminError && thrown.status === 401) {
        forgetSession();
        setSignedIn(false);
        return setTokenError(t('keys.sessionEnded'));
      }
      const ofServer = thrown instanceof AdminError;
      setTokenError(ofServer ? thrown.message : errorSentences(toKinoraError(thrown).toRecord()));
    }
  }, [values, model, hub, signedIn]);

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

  return { values, change, connect, disconnect, model, tokenError, signedIn };
}

/** Makes a worker token for this browser. @throws AdminError */
async function makeToken(name: string): Promise<string> {
  return (await admin.createKey(requestOf({ ...emptyForm, kind: 'worker', name }))).key;
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
