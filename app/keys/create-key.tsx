import { type FormEvent, useEffect, useRef, useState } from 'react';
import { Button } from '../shared/button';
import { ChoiceField, Select, Switch } from '../shared/fields';
import { linkTo } from '../shared/link';
import { t } from '../texts';
import '../texts/en/keys';
import type { CreatedKey } from './keys-state';
import {
  emptyForm,
  type KeyForm,
  lifetimes,
  type Preset,
  presets,
  sharedSentence,
} from './keys-view';

/** The form for a new key or worker token. */
export function CreateKey(props: { busy: boolean; onCreate: (form: KeyForm) => void }) {
  const [form, setForm] = useState(emptyForm);
  const fill = (part: Partial<KeyForm>) => setForm((before) => ({ ...before, ...part }));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    props.onCreate(form);
    fill({ name: '' });
  };
  return (
    <section className="panel" aria-labelledby="create-title">
      <h2 id="create-title">{t('keys.createTitle')}</h2>
      <form className="stack gap-20" onSubmit={submit}>
        <ChoiceField
          name="key-kind"
          legend={t('keys.kind')}
          options={kindsInOrder}
          chosen={form.kind}
          show={(kind) => (
            <span>
              {t(kinds[kind].name)}
              <small>{t(kinds[kind].hint)}</small>
            </span>
          )}
          onChange={(kind) => fill({ kind })}
        />
        <div className="field">
          <label htmlFor="key-name">{t('keys.name')}</label>
          <input
            id="key-name"
            type="text"
            required
            maxLength={100}
            pattern=".*\S.*"
            title={t('keys.nameRule')}
            autoComplete="off"
            placeholder={form.kind === 'api' ? t('keys.nameOfKey') : t('keys.nameOfToken')}
            value={form.name}
            onChange={(event) => fill({ name: event.target.value })}
          />
        </div>
        {form.kind === 'api' && (
          <div className="field">
            <label htmlFor="key-preset">{t('keys.may')}</label>
            <Select
              id="key-preset"
              aria-describedby="key-preset-hint"
              value={form.preset}
              options={presetNames.map((name) => [name, t(presets[name].name)])}
              onChange={(preset) => fill({ preset })}
            />
            <p className="field-hint" id="key-preset-hint">
              {t(presets[form.preset].hint)}
            </p>
          </div>
        )}
        <div className="field">
          <label htmlFor="key-days">{t('keys.ends')}</label>
          <Select
            id="key-days"
            value={form.days}
            options={lifetimes.map(({ days, name }) => [days, t(name)])}
            onChange={(days) => fill({ days })}
          />
        </div>
        <div className="field">
          <Switch
            name={t('keys.shared')}
            hint={sharedSentence(form)}
            checked={form.shared}
            onChange={(shared) => fill({ shared })}
          />
        </div>
        <button type="submit" className="primary" disabled={props.busy}>
          {form.kind === 'api' ? t('keys.createKey') : t('keys.createToken')}
        </button>
      </form>
    </section>
  );
}

const kinds = {
  api: { name: 'keys.kindApi', hint: 'keys.kindApiHint' },
  worker: { name: 'keys.kindWorker', hint: 'keys.kindWorkerHint' },
} as const;
const kindsInOrder = ['api', 'worker'] as const;

const presetNames = Object.keys(presets) as Preset[];

/** The complete new key, which is shown only once. */
export function CreatedKeyPanel({ created, onDone }: { created: CreatedKey; onDone: () => void }) {
  const { key, record } = created;
  const title = useRef<HTMLHeadingElement>(null);
  const code = useRef<HTMLElement>(null);
  const [copied, setCopied] = useState<'yes' | 'no' | null>(null);
  useEffect(() => title.current?.focus(), []);
  const copy = () => {
    navigator.clipboard.writeText(key).then(
      () => setCopied('yes'),
      () => {
        // No permission, or a page without https: select the key, so that the user can copy it.
        if (code.current) getSelection()?.selectAllChildren(code.current);
        setCopied('no');
      },
    );
  };
  return (
    <section className="panel keys-created" aria-labelledby="created-title">
      <h2 id="created-title" ref={title} tabIndex={-1}>
        {t('keys.copyNow', { name: record.name })}
      </h2>
      <p>{t('keys.onlyOnce')}</p>
      <p className="keys-whole info on-sunken">
        <code ref={code}>{key}</code>
      </p>
      <div className="actions row">
        <Button className="primary" onClick={copy}>
          {t('keys.copy')}
        </Button>
        <Button onClick={onDone}>{t('keys.haveIt')}</Button>
        <span role="status" className="copied muted">
          {copied === 'yes' && t('keys.copied')}
          {copied === 'no' && t('keys.selected')}
        </span>
      </div>
      {record.kind === 'worker' && (
        <p className="field-hint">
          {t.rich('keys.useToken', {
            serve: linkTo('/serve'),
            code: (command) => <code>{command}</code>,
          })}
        </p>
      )}
      {record.kind === 'api' && (
        <p className="field-hint">
          {t.rich('keys.useKey', {
            docs: linkTo('/docs'),
            code: (header) => <code>{header}</code>,
          })}
        </p>
      )}
    </section>
  );
}
