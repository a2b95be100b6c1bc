import { type Dispatch, lazy, memo, Suspense, useEffect } from 'react';
import { Problem } from '../../shared/messages';
import { ModelField } from '../../shared/model-field';
import { pickModel } from '../../shared/use-models';
import { t } from '../../texts';
import '../../texts/en/form';
import { GpuNotice, isEmulated } from '../../shared/gpu';
import { CodeButton } from './code-button';
import { forecastOf, useForecast } from './forecast';
import { FieldsContext, useRequest } from './form-context';
import {
  endsInImage,
  type FormAction,
  type FormValues,
  type ModelDefaults,
  modelDefaults,
  showsOthers,
} from './form-state';
import { GenerateBar } from './generate-bar';
import { ImageField } from './image-field';
import { LoraField } from './lora-field';
import { NegativePromptField } from './negative-prompt-field';
import { AdvancedFields, NumberField, SeedField, SizeField, SwitchField } from './parameter-fields';
import { PresetField } from './preset-field';
import { ProfileField } from './profile-field';
import { PromptField } from './prompt-field';
import { mayGiveNoise, runOfForm, samplingOf } from './sampling';
import { StorageNote } from './storage-note';
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
export const RequestForm = memo(function RequestForm() {
  const request = useRequest();
  const { formRef, form, change, models, startError, fileInput, edit, shared, several } = request;
  const { notice } = fileInput;
  const { values } = form;
  const replaced = form.replaced.at(-1);
  const model = models.status === 'ready' ? pickModel(models.models, values.model) : undefined;
  const defaults = modelDefaults(model?.manifest);
  useModelDefaults(model && defaults, values, change);
  const resolved = samplingOf(model, values);
  const errors = useShownErrors(form);
  const videos = several?.length ?? 1;
  const runs = model ? Array(videos).fill(runOfForm(model, form, values.backend)) : [];
  const requests = model ? forecastOf(runs, [model], request.gpu) : [];
  const forecast = useForecast(requests, request.revision, true);
  const set = (changes: Partial<FormValues>) => change({ type: 'changed', values: changes });
  const problem = request.gpuProblem;
  return (
    <FieldsContext value={{ ...request, values, errors, model, resolved, set }}>
      <form
        ref={formRef}
        className="panel request flex"
        aria-label={t('form.settings')}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          request.onGenerate();
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
          <ImageField name="image" />
          <ImageField name="lastImage" />
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
          <PromptField />
          <ModelField
            list={models}
            model={model}
            offered={request.introduced}
            onChange={(id) => set({ model: id })}
          />
          <SizeField />
          <NumberField name="duration" unit={t('form.secondsUnit')}>
            <SwitchField name="loop" refusal={endsInImage(form) ? t('form.noLoop') : undefined} />
            <SwitchField name="smooth" />
          </NumberField>
          <details className="more">
            <summary>{t('form.advanced')}</summary>
            <NumberField name="num_inference_steps" />
            <ProfileField />
            <NegativePromptField />
            <div className="field-pair stack gap-20 halves">
              <NumberField name="guidance_scale" hint={t('form.guidanceHint')} />
              <NumberField
                name="flow_shift"
                hint={t(mayGiveNoise(model, resolved) ? 'form.noisyShift' : 'form.flowShiftHint')}
              />
            </div>
            <SeedField />
            <LoraField />
            <PresetField />
            <AdvancedFields />
          </details>
          <VariationsField />
          <CodeButton />
        </div>
        <div className="request-notes stack ruled">
          {problem && !isEmulated(problem) && (
            <GpuNotice error={problem} backend={request.backend}>
              {request.gpuActions}
            </GpuNotice>
          )}
          {model && <StorageNote videos={videos} frameRate={model.manifest.framesPerSecond} />}
          {edit.id !== null && (
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
        <GenerateBar forecast={forecast} videos={videos} />
      </form>
    </FieldsContext>
  );
});

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
