'use client';

import { useCallback, useEffect, useState } from 'react';
import { useLibrary } from '../library';
import { Page } from '../shared/app-page';
import { useDevice } from '../shared/device';
import { GpuActions, GpuBadge, GpuNotice, gpuProblem, isEmulated, useGpu } from '../shared/gpu';
import { pickModel, useModels } from '../shared/use-models';
import { Abilities } from './abilities';
import { ConnectForm } from './connect-form';
import { ConnectionPanel } from './connection-panel';
import { ServedList, TakesPanel } from './panels';
import { installServeApi } from './serve-api';
import { useServing } from './serving-store';
import { optionsOf, useConnect } from './use-connect';

/** The page that connects this tab as a worker of the API. */
export function ServePage() {
  const library = useLibrary();
  const models = useModels();
  const { gpu, check } = useGpu();
  const { connection, served, completed, options } = useServing();
  const hub = library.status === 'ready' ? library.snapshot.hub : null;
  const list = models.status === 'ready' ? models.models : null;
  const pick = useCallback((id: string) => (list ? pickModel(list, id) : undefined), [list]);
  const form = useConnect(pick, hub, gpu);
  const { values, change, model } = form;
  const connected = options !== null;
  const backend = options?.device.backend ?? values.backend;
  const problem = gpuProblem(gpu, useDevice().backend, null);
  const gpuActions = problem && (
    <GpuActions
      gpu={gpu}
      backend={backend}
      error={problem}
      onCheck={check}
      onUseCpu={() => change({ backend: 'wasm' })}
    />
  );
  const [ready, setReady] = useState(false);
  useEffect(() => {
    setReady(true);
    return installServeApi();
  }, []);
  return (
    <Page
      here="/serve"
      name="common.serve"
      className="page serve"
      data-ready={ready}
      header={
        <GpuBadge gpu={gpu} backend={backend} problem={connected ? null : problem}>
          {gpuActions}
        </GpuBadge>
      }
    >
      <div className="columns stack gap-24" data-connected={connected}>
        <ConnectForm
          values={values}
          change={change}
          models={models}
          model={model}
          report={gpu.status === 'known' ? gpu.report : null}
          connected={connected}
          tokenError={form.tokenError}
          signedIn={form.signedIn}
          onConnect={() => void form.connect()}
        />
        <div className="column stack gap-24">
          {!connected && problem && !isEmulated(problem) && (
            <GpuNotice error={problem} backend={backend}>
              {gpuActions}
            </GpuNotice>
          )}
          <ConnectionPanel connection={connection} onDisconnect={form.disconnect} />
          {model && <Abilities model={model} />}
          <ServedList served={served} completed={completed} />
          <TakesPanel
            connection={connection}
            options={options ?? (model && hub !== null ? optionsOf(model, hub) : null)}
          />
        </div>
      </div>
    </Page>
  );
}
