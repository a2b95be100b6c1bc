import { type Dispatch, lazy, type ReactNode, type RefObject, Suspense, useEffect } from 'react';
import {
  type DeviceReport,
  type ErrorRecord,
  nativeSizeOf,
  type ParametersInput,
} from '../../../lib/contract';
import { useHydrated } from '../../shared/browser';
import { Problem } from '../../shared/messages';
import { ModelField } from '../../shared/model-field';
import { type ModelList, pickModel } from '../../shared/use-models';
import { t } from '../../texts';
import '../../texts/en/form';
import type { QueueView } from '../use-data';
import { CodeButton } from './code-button';
import { type Example, exampleLoraOf } from './examples';
import { forecastOf, useForecast } from './forecast';
import {
  type ChosenImage,
  endsInImage,
  type FormAction,
  type FormState,
  type FormValues,
  type ImageName,
  type ModelDefaults,
  modelDefaults,
  showsOthers,
  typedPrompt,
} from './form-state';
import { GenerateBar } from './generate-bar';
import { ImageField } from './image-field';
import { LoraField } from './lora-field';
import { NegativePromptField } from './negative-prompt-field';
import {
  AdvancedFields,
  type FormFields,
  LastImageField,
  NumberField,
  SeedField,
  SizeField,
  SwitchField,
} from './parameter-fields';
import { PresetField } from './preset-field';
import { ProfileField } from './profile-field';
import { PromptField } from './prompt-field';
import { chosenOptions, mayGiveNoise, runOfForm, samplingOf } from './sampling';
import { StorageNote } from './storage-note';
import type { Edit } from './use-edit';
import type { FileInput } from './use-file-input';
import type { Improve } from './use-improve';
import type { SharedFiles } from './use-launched-files';
import { useLoraChecks } from './use-loras';
import { useShownErrors } from './use-shown-errors';
import { VariationsField } from './variations-field';

// They follow from what came from elsewhere.
const ReplacedNotice = lazy(async () => ({
  default: (await import('./replaced-notice')).ReplacedNotice,
}));
const SharedQuestion = lazy(async () => ({
  default: (await import('./replaced-notice')).SharedQuestion,
}));

/** All settings of a video, and the Generate button. */
export function RequestForm(props: {
  formRef: RefObject<HTMLFormElement | null>;
  form: FormState;
  change: Dispatch<FormAction>;
  models: ModelList;
  fileInput: FileInput;
  /** The images that each become a video; null where the one of the form does. */
  several: readonly ChosenImage[] | null;
  shared: SharedFiles;
  startError: ErrorRecord | null;
  /** What is wrong with the GPU; null where nothing is. */
  gpuNotice: ReactNode;
  gpu: DeviceReport | null;
  /** Changes when a run has ended, which may have measured the device. */
  revision: string;
  busy: boolean;
  /** Whether the stage shows the introduction. */
  introduced: boolean;
  /** Whether the draft is restored; Generate may be pressed before. */
  ready: boolean;
  improve: Improve;
  queue: QueueView;
  edit: Edit;
  onExampleLora: () => void;
  onExample: (example: Example) => void;
  onGenerate: () => void;
  onVariations: (changes: readonly Partial<ParametersInput>[]) => void;
}) {
  const { formRef, form, change, models, startError, busy, ready, improve } = props;
  const { fileInput, edit, shared, several } = props;
  const { notice } = fileInput;
  const waiting = props.queue.waiting.length;
  const editing = edit.id !== null;
  const onFiles = (chosen: readonly File[], to?: ImageName) => void fileInput.addFiles(chosen, to);
  const hydrated = useHydrated();
  const improving = improve.state.status === 'running';
  const { values, files } = form;
  const replaced = form.replaced.at(-1);
  const model = models.status === 'ready' ? pickModel(models.models, values.model) : undefined;
  const defaults = modelDefaults(model?.manifest);
  useModelDefaults(model && defaults, values, change);
  const resolved = samplingOf(model, values);
  const errors = useShownErrors(form);
  const checks = useLoraChecks(files.loras, model?.manifest.id ?? null);
  const videos = several?.length ?? 1;
  const runs = model ? Array(videos).fill(runOfForm(model, form, values.backend)) : [];
  const requests = model ? forecastOf(runs, [model], props.gpu) : [];
  const forecast = useForecast(requests, props.revision, true);
  const set = (changes: Partial<FormValues>) => change({ type: 'changed', values: changes });
  const fields: FormFields = { values, errors, model, resolved, set };
  const imageField = (name: ImageName) => (
    <ImageField
      name={name}
      image={files[name]}
      error={errors[name]}
      onFiles={(chosen) => onFiles(chosen, name)}
      size={values.size}
      frame={
        model && nativeSizeOf(model.manifest, model.manifest.profiles[values.profile], values.size)
      }
      onFraming={(framing) => change({ type: 'imageFramed', framing, name })}
      onRemove={() => change({ type: 'imageSet', image: null, name })}
      {...(name === 'lastImage' && { onSwap: () => change({ type: 'imagesSwapped' }) })}
    >
      {name === 'lastImage' && <LastImageField fields={fields} />}
      {name === 'lastImage' && resolved?.applied.adapter && (
        <p className="field-hint">{t('form.endUntrained')}</p>
      )}
    </ImageField>
  );
  return (
    <form
      ref={formRef}
      className="panel request flex"
      aria-label={t('form.settings')}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        props.onGenerate();
      }}
    >
      <div className="request-fields stack gap-20 relative">
        <div role="status" className="notice">
          {shared.files.length > 0 && (
            <Suspense>
              <SharedQuestion shared={shared} content={form} />
            </Suspense>
          )}
          {replaced && (
            <Suspense>
              <ReplacedNotice last={replaced} change={change} />
            </Suspense>
          )}
        </div>
        {imageField('image')}
        {imageField('lastImage')}
        <div role="status" className="notice">
          {notice?.kind === 'error' && <Problem error={notice.error} />}
          {notice?.kind === 'info' && <p className="info">{notice.text}</p>}
          {several && (
            <div className="info">
              <p>{t('form.severalImages', { count: several.length })}</p>
              <button type="button" className="small" onClick={fileInput.clearNotice}>
                {t('form.firstImageOnly')}
              </button>
            </div>
          )}
        </div>
        <PromptField
          values={values}
          improve={improve}
          busy={busy}
          change={change}
          error={errors.prompt}
          tokenizer={model?.ready ? model.manifest.id : null}
          onExample={props.onExample}
        />
        <ModelField
          list={models}
          model={model}
          offered={props.introduced}
          onChange={(id) => set({ model: id })}
        />
        <SizeField fields={fields} />
        <NumberField name="duration" fields={fields} unit={t('form.secondsUnit')}>
          <SwitchField
            name="loop"
            fields={fields}
            refusal={endsInImage(form) ? t('form.noLoop') : undefined}
          />
          <SwitchField name="smooth" fields={fields} />
        </NumberField>
        <details className="more">
          <summary>{t('form.advanced')}</summary>
          <NumberField name="num_inference_steps" fields={fields} />
          <ProfileField fields={fields} />
          <NegativePromptField fields={fields} />
          <div className="field-pair stack gap-20 halves">
            <NumberField name="guidance_scale" fields={fields} hint={t('form.guidanceHint')} />
            <NumberField
              name="flow_shift"
              fields={fields}
              hint={t(mayGiveNoise(model, resolved) ? 'form.noisyShift' : 'form.flowShiftHint')}
            />
          </div>
          <SeedField fields={fields} />
          <LoraField
            loras={files.loras}
            library={models.status === 'ready' ? models.loras : []}
            models={models.status === 'ready' ? models.models : []}
            onModel={(id) => set({ model: id })}
            errors={errors}
            checks={checks}
            onFiles={onFiles}
            onScale={(key, scale) => change({ type: 'loraScaled', key, scale })}
            onMove={(key, by) => change({ type: 'loraMoved', key, by })}
            onRemove={(key) => change({ type: 'loraRemoved', key })}
            onPick={fileInput.pickLora}
            example={exampleLoraOf(model?.manifest.id)}
            onExample={props.onExampleLora}
            onWord={(word) =>
              set(
                typedPrompt(
                  [values.prompt.trim(), word].filter(Boolean).join(', '),
                  values.optimization,
                ),
              )
            }
          />
          <PresetField fields={fields} />
          <AdvancedFields fields={fields} />
        </details>
        <VariationsField
          fields={fields}
          disabled={!ready || improving}
          onAdd={props.onVariations}
        />
        <CodeButton
          options={chosenOptions(model, values)}
          form={{ ...form, values: { ...values, model: model?.manifest.id ?? '' } }}
          library={models.status === 'ready' ? models.loras : []}
        />
      </div>
      <div className="request-notes stack ruled">
        {props.gpuNotice}
        {model && (
          <StorageNote
            form={form}
            videos={videos}
            frameRate={model.manifest.framesPerSecond}
            revision={props.revision}
          />
        )}
        {editing && (
          <p className="field-hint">
            {t('form.editing')}{' '}
            <button type="button" className="inline" onClick={edit.end}>
              {t('form.leaveAsItWas')}
            </button>
          </p>
        )}
        {startError && (
          <div role="alert">
            <Problem error={startError} />
          </div>
        )}
      </div>
      <GenerateBar fields={fields} forecast={forecast} waiting={waiting}>
        <button type="submit" className="primary" disabled={!hydrated || improving}>
          {editing && t('form.saveChanges')}
          {!editing && generateText(videos, waiting)}
        </button>
      </GenerateBar>
    </form>
  );
}

/** What the button says. @param videos how many it makes */
function generateText(videos: number, waiting: number): string {
  if (videos > 1) return t('form.generateVideos', { count: videos });
  return waiting > 0 ? t('form.generateWaits', { count: waiting }) : t('form.generate');
}

/** Lets the values that nobody has changed follow the model; a draft may come with those of another one. */
function useModelDefaults(
  defaults: ModelDefaults | undefined,
  values: FormValues,
  change: Dispatch<FormAction>,
): void {
  const differs = defaults && showsOthers(values, defaults);
  useEffect(() => {
    if (defaults && differs) change({ type: 'modelShown', defaults });
  });
}
