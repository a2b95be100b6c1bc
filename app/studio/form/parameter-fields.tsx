import type { ComponentProps, ReactNode } from 'react';
import {
  lastImageSeconds,
  parameterRanges,
  type Size,
  type SwitchName,
  sizes,
  switches,
} from '../../../lib/contract';
import { ChoiceField, describedBy, FieldNotes } from '../../shared/fields';
import { FinisherDownload } from '../../shared/finisher';
import { type TextKey, t } from '../../texts';
import '../../texts/en/form';
import { useFields } from './form-context';
import type { NumberName } from './form-state';
import { unusedNote } from './sampling';

/** A number with a slider. The slider is for pointers only; keyboards and screen readers use the input. */
export function NumberField(props: {
  name: Exclude<NumberName, 'seed'>;
  unit?: string;
  hint?: string;
  /** What belongs to it, below. */
  children?: ReactNode;
}) {
  const { name, unit } = props;
  const { values, errors, resolved, set } = useFields();
  const error = errors[name];
  // What is invalid has to be corrected all the same.
  const unused = error || name === 'duration' ? null : unusedNote(name, resolved);
  const fixed = typeof unused?.shown === 'string';
  const value = unused?.shown ?? values[name];
  const onChange = (text: string) => set({ [name]: text });
  const hint = unused?.sentence ?? props.hint;
  const { min, max, step, default: fallback } = parameterRanges[name];
  const slider = Number(value);
  return (
    <div className="field" data-unused={unused ? true : undefined}>
      <NumberHead
        id={name}
        label={t(`form.numbers.${name}`)}
        unit={unit}
        type={fixed ? 'text' : 'number'}
        {...(!fixed && { min, max, step })}
        value={value}
        readOnly={fixed}
        {...describedBy(name, error, hint !== undefined)}
        onChange={(event) => onChange(event.target.value)}
      />
      <input
        type="range"
        aria-hidden
        tabIndex={-1}
        disabled={fixed}
        min={min}
        max={max}
        step={step}
        value={Number.isFinite(slider) && value !== '' ? slider : fallback}
        onChange={(event) => onChange(event.target.value)}
      />
      <FieldNotes id={name} error={error} hint={hint} />
      {props.children}
    </div>
  );
}

/** The name of a number and where it is typed. */
function NumberHead(
  props: ComponentProps<'input'> & {
    readonly id: string;
    readonly label: string;
    readonly unit: string | undefined;
  },
) {
  const { label, unit, ...input } = props;
  return (
    <div className="field-head row between">
      <label htmlFor={input.id}>{label}</label>
      <span className="number row gap-6">
        <input inputMode="decimal" {...input} />
        {unit && <span className="unit muted text-l">{unit}</span>}
      </span>
    </div>
  );
}

/** The second at which the video shows the end image; empty is its end. */
export function LastImageField() {
  const { values, errors, set } = useFields();
  const error = errors.last_image_at;
  return (
    <>
      <NumberHead
        id="last_image_at"
        label={t('form.lastImageAt')}
        unit={values.last_image_at && t('form.secondsUnit')}
        type="number"
        {...lastImageSeconds}
        max={values.duration}
        placeholder={t('form.atTheEnd')}
        value={values.last_image_at}
        {...describedBy('last_image_at', error)}
        onChange={(event) => set({ last_image_at: event.target.value })}
      />
      <FieldNotes id="last_image_at" error={error} />
    </>
  );
}

const sizeNames: Readonly<Record<Size, TextKey>> = {
  '1280*720': 'form.landscape',
  '720*1280': 'form.portrait',
};

/** Choice of the video's size. */
export function SizeField() {
  const { values, set } = useFields();
  return (
    <ChoiceField
      name="size"
      legend={t('form.size')}
      options={sizes}
      chosen={values.size}
      show={(size) => (
        <>
          <span className="shape" data-size={size} aria-hidden="true" />
          <span>
            {t(sizeNames[size])} <small>{size.replace('*', '×')}</small>
          </span>
        </>
      )}
      onChange={(size) => set({ size, sizeChosen: true })}
    >
      <SwitchField name="upscale" />
      {values.upscale && <SwitchField name="upscaler" />}
    </ChoiceField>
  );
}

/**
 * A switch of the video, with the download of the network that it takes.
 *
 * @param props.refusal why it cannot be switched on; it is off then
 */
export function SwitchField(props: { name: SwitchName; refusal?: string | undefined }) {
  const { name, refusal } = props;
  const { values, set } = useFields();
  const { on, network } = switches[name];
  const isOn = values[name] === on && refusal === undefined;
  return (
    <>
      <label className="check" title={t(`form.${name}Hint`)}>
        <input
          type="checkbox"
          checked={isOn}
          disabled={refusal !== undefined}
          onChange={(event) => set({ [name]: event.target.checked ? on : undefined })}
        />
        <span>
          {t(`form.${name}`)}
          {refusal && <small>{refusal}</small>}
        </span>
      </label>
      {isOn && network && <FinisherDownload part={network} />}
    </>
  );
}
