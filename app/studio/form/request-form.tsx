import { type Dispatch, memo, useEffect, useState } from 'react';
import { Button } from '../../shared/button';
import { later } from '../../shared/later';
import { Problem, ProblemAlert } from '../../shared/messages';
import { ModelField } from '../../shared/model-field';
import { pickModel } from '../../shared/use-models';
import { t } from '../../texts';
import '../../texts/en/form';
import { chosenSwitches, formatBytes, formatOfFile, parameterRanges } from '../../../lib/contract';
import { bitRateOf } from '../../../lib/video/bit-rate';
import { useAnswer } from '../../shared/browser';
import { firstAct, useActed } from '../../shared/first-act';
import { GpuNotice, isEmulated } from '../../shared/gpu';
import { forecastOf, useForecast } from './forecast';
import { FieldsContext, type RequestContent, useFields } from './form-context';
import {
  endsInImage,
  type FormAction,
  type FormState,
  type FormValues,
  type ModelDefaults,
  modelDefaults,
  showsOthers,
  toNumber,
} from './form-state';
import { GenerateBar } from './generate-bar';
import { ImageField } from './image-field';
import { NumberField, SizeField, SwitchField } from './parameter-fields';
import { PromptField } from './prompt-field';
import { chosenOptions, runOfForm, samplingOf } from './sampling';
import type { FieldErrors } from './validation';

// They follow from what came from elsewhere.
const ReplacedNotice = later(async () => (await import('./replaced-notice')).ReplacedNotice);
const SharedQuestion = later(async () => (await import('./replaced-notice')).SharedQuestion);

// They are unfolded by what a person does.
const VariationsField = later(async () => (await import('./variations-field')).VariationsField);
const AdvancedFields = later(async () => (await import('./advanced-fields')).AdvancedFields);

/** All settings of a video, and the Generate button. */
export const RequestForm = memo(function RequestForm(request: RequestContent) {
  const acted = useActed();
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
            {shared.files.length > 0 && <SharedQuestion shared={shared} content={form} />}
            {replaced && <ReplacedNotice last={replaced} change={change} />}
          </div>
          <ImageField name="image" />
          <ImageField name="lastImage" />
          <div role="status" className="notice">
            {notice?.kind === 'error' && <Problem error={notice.error} />}
            {notice?.kind === 'info' && <p className="info">{notice.text}</p>}
            {several && (
              <div className="info">
                <p>{t('form.severalImages', { count: several.length })}</p>
                <Button className="small" onClick={fileInput.clearNotice}>
                  {t('form.firstImageOnly')}
                </Button>
              </div>
            )}
          </div>
          <PromptField />
          <ModelField
            list={models}
            model={model}
            offered={request.introduced}
            report={request.gpu}
            backend={request.backend}
            onChange={(id) => set({ model: id })}
          />
          <SizeField />
          <NumberField name="duration" unit={t('form.secondsUnit')}>
            <SwitchField name="loop" refusal={endsInImage(form) ? t('form.noLoop') : undefined} />
            <SwitchField name="smooth" />
          </NumberField>
          <details className="more">
            <summary>{t('form.advanced')}</summary>
            {acted && <AdvancedFields />}
          </details>
          <details className="more">
            <summary>{t('form.variations')}</summary>
            {acted && <VariationsField />}
          </details>
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
              <Button className="inline" onClick={edit.end}>
                {t('form.leaveAsItWas')}
              </Button>
            </p>
          )}
          <ProblemAlert error={startError} />
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

/** Few people need it, so it is no part of the page's first script. */
const CodeDialog = later(async () => (await import('./code-dialog')).CodeDialog);

/** The button that shows the form as code, with its dialog. */
function CodeButton() {
  const { form, values, model, models } = useFields();
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button className="quiet" onClick={() => setOpen(true)}>
        {t('form.copyAsCode')}
      </Button>
      {open && (
        <CodeDialog
          options={chosenOptions(model, values)}
          form={{ ...form, values: { ...values, model: model?.manifest.id ?? '' } }}
          library={models.status === 'ready' ? models.loras : []}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  );
}

/**
 * Says before a run that its videos will not fit into the storage of this browser; nothing where they fit, or where
 * the browser does not tell.
 *
 * @param props.videos how many are made of the form
 * @param props.frameRate frames per second of the model
 */
function StorageNote({ videos, frameRate }: { videos: number; frameRate: number }) {
  const { form, revision } = useFields();
  const { size, duration } = form.values;
  const { min, max } = parameterRanges.duration;
  const seconds = Math.min(max, Math.max(min, toNumber(duration) || min));
  const rate = bitRateOf(formatOfFile({ ...chosenSwitches(form.values), size }, frameRate));
  // The images are stored with it.
  const { image, lastImage } = form.files;
  const one = (rate / 8) * seconds + (image?.file.size ?? 0) + (lastImage?.file.size ?? 0);
  const bytes = one * videos;
  const fits = useRoom(Math.ceil(bytes), revision);
  if (fits !== false) return null;
  return (
    <p className="problem" data-code="STORAGE_FULL" role="status">
      {t('form.noRoom', { videos, bytes: formatBytes(bytes) })}
    </p>
  );
}

/** Whether this browser can store so many bytes; null while that is not known. */
function useRoom(bytes: number, revision: string): boolean | null {
  const [fits, setFits] = useState<boolean | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: A run that has ended has written or deleted files.
  useEffect(() => {
    let current = true;
    const ask = async () => {
      await firstAct();
      const { hasRoom } = await import('../../../lib/predictions/opfs');
      const answer = await hasRoom(bytes);
      if (current) setFits(answer);
    };
    const check = () => void ask().catch(() => {});
    check();
    // A person comes back who has freed space elsewhere.
    window.addEventListener('focus', check);
    return () => {
      current = false;
      window.removeEventListener('focus', check);
    };
  }, [bytes, revision]);
  return fits;
}

const nothing: FieldErrors = {};

/** The errors to show; none until the schemas that check a request are loaded, which are large. */
function useShownErrors(form: FormState): FieldErrors {
  const validation = useAnswer(async () => {
    await firstAct();
    return import('./validation');
  }, []);
  return validation?.shownErrors(form) ?? nothing;
}
