import { type FormEvent, useState } from 'react';
import type { ErrorRecord, LibrarySnapshot } from '../../lib/contract';
import { Button } from '../shared/button';
import { describedBy, FieldNotes } from '../shared/fields';
import { t } from '../texts';
import '../texts/en/models';
import { Outcome } from './outcome';
import { type Said, shownAddress, type TypedAddress } from './page-state';

/** Where model files come from: the hub itself, or a mirror of it. */
export function HubSetting(props: {
  library: Pick<LibrarySnapshot, 'hub' | 'hasHubToken'>;
  /** Whether it is unfolded at first. */
  open?: boolean;
  doing: string | undefined;
  done: Said | undefined;
  problem: ErrorRecord | undefined;
  onSave: (base: string) => void;
  /** Null removes the token. */
  onToken: (token: string | null) => void;
}) {
  const { problem } = props;
  const { hub, hasHubToken } = props.library;
  const [token, setToken] = useState('');
  const [typed, setTyped] = useState<TypedAddress | null>(null);
  const shown = shownAddress(typed, hub);
  const save = (event: FormEvent) => {
    event.preventDefault();
    props.onSave(shown.trim());
  };
  const saveToken = (event: FormEvent) => {
    event.preventDefault();
    props.onToken(token.trim());
    setToken('');
  };
  return (
    <details className="panel more" open={props.open}>
      <summary>{t('models.hubAddress')}</summary>
      <form className="field" onSubmit={save}>
        <label htmlFor="hub">{t('models.hubBase')}</label>
        <div className="input-row">
          <input
            id="hub"
            type="url"
            required
            spellCheck={false}
            value={shown}
            {...describedBy('hub', undefined, true)}
            onChange={(event) => setTyped({ text: event.target.value, hub })}
          />
          <button type="submit" disabled={props.doing !== undefined}>
            {t('models.save')}
          </button>
        </div>
        <FieldNotes id="hub" hint={t('models.hubHint')} />
      </form>
      <form className="field" onSubmit={saveToken}>
        <label htmlFor="hub-token">{t('models.hubToken')}</label>
        <div className="input-row">
          <input
            id="hub-token"
            type="password"
            autoComplete="off"
            spellCheck={false}
            required
            placeholder={hasHubToken ? t('models.hasToken') : 'hf_…'}
            value={token}
            {...describedBy('hub-token', undefined, true)}
            onChange={(event) => setToken(event.target.value)}
          />
          <button type="submit" disabled={props.doing !== undefined}>
            {t('models.keepToken')}
          </button>
          {hasHubToken && (
            <Button disabled={props.doing !== undefined} onClick={() => props.onToken(null)}>
              {t('models.removeToken')}
            </Button>
          )}
        </div>
        <FieldNotes id="hub-token" hint={t('models.hubTokenHint')} />
      </form>
      <Outcome doing={props.doing} done={props.done} problem={problem} />
    </details>
  );
}
