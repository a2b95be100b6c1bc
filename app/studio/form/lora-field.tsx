import { type ChangeEvent, useRef } from 'react';
import { groupPairs, type ModelEntry, maxLoras } from '../../../lib/contract';
import { Button } from '../../shared/button';
import { describedBy, FieldNotes } from '../../shared/fields';
import { ArrowIcon, CloseIcon } from '../../shared/icons';
import { Link, linkTo } from '../../shared/link';
import { errorTexts, t } from '../../texts';
import '../../texts/en/form';
import { exampleLoraOf } from './examples';
import { useFields } from './form-context';
import { type ChosenLora, rowsOfLoras, typedPrompt } from './form-state';
import { type LoraCheck, useLoraChecks } from './use-loras';

/** Up to three LoRAs with their scales, from the library or from files. */
export function LoraField() {
  const { form, models: list, model, errors, fileInput, onExampleLora } = useFields();
  const { loras } = form.files;
  const [library, models] = list.status === 'ready' ? [list.loras, list.models] : [[], []];
  const checks = useLoraChecks(loras, model?.manifest.id ?? null);
  const example = exampleLoraOf(model?.manifest.id);
  const rows = rowsOfLoras(loras);
  const input = useRef<HTMLInputElement>(null);
  const choose = (event: ChangeEvent<HTMLInputElement>) => {
    void fileInput.addFiles([...(event.target.files ?? [])]);
    event.target.value = '';
  };
  const full = rows.length >= maxLoras;
  const chosen = loras.filter(({ file }) => file === null).map(({ name }) => name);
  const offered = groupPairs(library, ({ name }) => name)
    .filter((files) => !files.some(({ name }) => chosen.includes(name)))
    .map((files) => {
      const name = nameOf(files);
      return {
        name,
        label: t('form.useLora', { name }),
        use: () => fileInput.pickLora(files[0].name),
      };
    });
  if (example !== null && !loras.some(({ name }) => name === example)) {
    const label = t('form.useExampleLora', { name: example });
    offered.push({ name: example, label, use: onExampleLora });
  }
  return (
    <fieldset className="field" id="loras">
      <legend>{t('form.lora')}</legend>
      {loras.length > 0 && (
        <ul className="stack gap-8 mb-8">
          {rows.map((files, index) => {
            const [lora] = files;
            const check = checksOf(files, checks);
            return (
              <LoraRow
                key={lora.key}
                lora={lora}
                name={nameOf(files)}
                place={{ first: index === 0, last: index === rows.length - 1 }}
                words={check.words}
                error={errors[lora.key] ?? check.misfit}
                unused={check.unused}
                fitting={models.filter(
                  ({ manifest: { id, components } }) =>
                    check.fitting.includes(id) &&
                    // The files of a pair are for two transformers.
                    (files.length === 1 || components.some((one) => one.id === 'transformer_2')),
                )}
              />
            );
          })}
        </ul>
      )}
      {offered.length > 0 && (
        <p className="words">
          {offered.map(({ name, label, use }) => (
            <Button key={label} className="word" disabled={full} aria-label={label} onClick={use}>
              + {name.replace(/\.safetensors$/, '')}
            </Button>
          ))}
        </p>
      )}
      <input
        ref={input}
        className="visually-hidden"
        type="file"
        multiple
        accept=".safetensors"
        aria-label={t('form.loraFiles')}
        tabIndex={-1}
        onChange={choose}
      />
      <Button className="quiet" disabled={full} onClick={() => input.current?.click()}>
        {t('form.addLora')}
      </Button>
      <p className="field-hint">
        {t.rich('form.loraHint', {
          library: linkTo('/models#loras'),
        })}
      </p>
    </fieldset>
  );
}

/** The name of a row: that of its file, with the other half where it is a pair. */
function nameOf([file, other]: readonly [{ readonly name: string }, unknown?]): string {
  return other === undefined
    ? file.name
    : t('form.pairName', { name: file.name.replace(/\.safetensors$/, '') });
}

/** What is known of the files of a row together. */
function checksOf(files: readonly ChosenLora[], checks: Readonly<Record<string, LoraCheck>>) {
  const known = files.flatMap(({ key }) => checks[key] ?? []);
  const misfit = known.find((check) => check.misfit)?.misfit;
  return {
    misfit: misfit ? errorTexts(misfit).message : undefined,
    fitting: known.find((check) => check.misfit)?.fitting ?? [],
    words: [...new Set(known.flatMap(({ triggerWords }) => triggerWords))],
    unused: known.reduce((sum, check) => sum + check.unused, 0),
  };
}

/** One selected LoRA: its scale, its place among the others, and its trigger words. */
function LoraRow(props: {
  lora: ChosenLora;
  name: string;
  /** How many of its tensors have no effect. */
  unused: number;
  /** Models that it fits, where it does not fit the chosen one. */
  fitting: readonly ModelEntry[];
  /** Its trigger words. */
  words: readonly string[];
  place: { readonly first: boolean; readonly last: boolean };
  error: string | undefined;
}) {
  const { lora, name, words, place, error, unused, fitting } = props;
  const { values, change, set } = useFields();
  const { key } = lora;
  const addWord = (word: string) => {
    const prompt = [values.prompt.trim(), word].filter(Boolean).join(', ');
    set(typedPrompt(prompt, values.optimization));
  };
  return (
    <li>
      <div className="lora-row row">
        <label className="file-name flex-1 min-0 clip text-l" htmlFor={lora.key} title={name}>
          {t.rich('form.scaleOf', {
            name,
            hidden: (text) => <span className="visually-hidden">{text}</span>,
          })}
        </label>
        <input
          id={lora.key}
          type="number"
          inputMode="decimal"
          min={0}
          max={4}
          step={0.05}
          value={lora.scale}
          {...describedBy(lora.key, error)}
          onChange={(event) => change({ type: 'loraScaled', key, scale: event.target.value })}
        />
        {!(place.first && place.last) && (
          <span className="lora-moves stack gap-2">
            {([-1, 1] as const).map((by) => (
              <Button
                key={by}
                aria-label={
                  by < 0 ? t('form.moveNameUp', { name }) : t('form.moveNameDown', { name })
                }
                title={by < 0 ? t('form.moveUp') : t('form.moveDown')}
                // Not disabled: the focus would be lost where a move ends the list.
                aria-disabled={by < 0 ? place.first : place.last}
                onClick={() => change({ type: 'loraMoved', key, by })}
              >
                <ArrowIcon up={by < 0} />
              </Button>
            ))}
          </span>
        )}
        <Button
          className="icon"
          aria-label={t('form.removeName', { name })}
          onClick={() => change({ type: 'loraRemoved', key })}
        >
          <CloseIcon />
        </Button>
      </div>
      <FieldNotes id={lora.key} error={error} />
      {fitting.length > 0 && (
        <p className="words">
          {fitting.map(({ manifest: model, ready }) =>
            ready ? (
              <Button key={model.id} className="word" onClick={() => set({ model: model.id })}>
                {t('form.useModel', { name: model.name })}
              </Button>
            ) : (
              <Link key={model.id} href={`/models#${model.id}`}>
                {t('form.getModel', { name: model.name })}
              </Link>
            ),
          )}
        </p>
      )}
      {unused > 0 && <p className="field-hint">{t('form.loraUnused', { count: unused })}</p>}
      {words.length > 0 && (
        <p className="words">
          {words.map((word) => (
            <Button
              key={word}
              className="word"
              title={t('form.addToPrompt')}
              aria-label={t('form.addWord', { word })}
              onClick={() => addWord(word)}
            >
              + {word}
            </Button>
          ))}
        </p>
      )}
    </li>
  );
}
