/** @module-tag full */
import * as Comlink from 'comlink';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  demonstrationModel,
  type EngineApi,
  installTransferHandlers,
  type ModelManifest,
  parseParameters,
  quickChecker,
  sampleImagePath,
  samplePrompt,
} from '../../../lib/contract';
import { generate } from '../../../lib/engine/testing/runs';
import { fetchManifest } from '../../../lib/pipeline/open';
import { removeVideo } from '../../../lib/predictions/videos';
import { entry } from '../../models/testing/entries';
import { examples, loadExample } from './examples';
import { changeForm, emptyForm, type FormAction, type FormState } from './form-state';
import { qualities, qualityValues } from './quality';
import { runOfForm } from './sampling';

installTransferHandlers();

let worker: Worker;
let engine: Comlink.Remote<EngineApi>;
let manifest: ModelManifest;

beforeAll(async () => {
  worker = new Worker(new URL('../../../workers/engine.ts', import.meta.url), { type: 'module' });
  engine = Comlink.wrap<EngineApi>(worker);
  ({ manifest } = await fetchManifest(demonstrationModel, new URL('/models/', location.href)));
});
afterAll(() => worker.terminate());

const sample = { picture: sampleImagePath, values: { prompt: samplePrompt } };

describe.each([...examples, sample])('the quick checker lets $picture pass', (example) => {
  test.each(qualities)('in quality %s', async (quality) => {
    let form: FormState = emptyForm;
    const change = (action: FormAction) => {
      form = changeForm(form, action);
    };
    await loadExample(example, change);
    const { defaults } = manifest;
    const usual = Object.entries(defaults).map(([name, value]) => [name, String(value)]);
    const values = { ...Object.fromEntries(usual), ...qualityValues(manifest)[quality], seed: '1' };
    change({ type: 'changed', values });
    const { parameters, ...run } = runOfForm(entry({ manifest }), form, 'wasm');
    const { image } = form.files;
    if (!image) throw new Error('the example has no picture');
    const { safety, videoFile } = await generate(engine, {
      ...run,
      id: crypto.randomUUID().replaceAll('-', ''),
      image: image.file,
      parameters: parseParameters(parameters),
      loras: [],
    });
    await removeVideo(videoFile);
    expect(safety).toMatchObject({
      status: 'clear',
      model: quickChecker.model,
      threshold: quickChecker.softThreshold,
    });
    expect(safety?.frames).toHaveLength(16);
    expect(safety?.input).toBeLessThan(quickChecker.threshold);
  });
});
