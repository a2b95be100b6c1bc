import type { DeviceReport, ModelEntry } from '../../lib/contract';
import { BackendField, describedBy, FieldNotes, Switch } from '../shared/fields';
import { linkTo } from '../shared/link';
import { ModelField } from '../shared/model-field';
import type { ModelList } from '../shared/use-models';
import { t } from '../texts';
import '../texts/en/keys';
import '../texts/en/serve';
import type { ConnectValues } from './use-connect';

/** The options of the connection. They cannot be changed while the tab is connected. */
export function ConnectForm(props: {
  values: ConnectValues;
  change: (values: Partial<ConnectValues>) => void;
  models: ModelList;
  model: ModelEntry | undefined;
  /** The engine's report on the GPU; null until it is known. */
  report: DeviceReport | null;
  tokenError: string | null;
  /** The token is then made by *Connect*. */
  signedIn: boolean;
  connected: boolean;
  onConnect: () => void;
}) {
  const { values, change, models, model, report, tokenError, connected, signedIn, onConnect } =
    props;
  const error = tokenError ?? undefined;
  const tokenField = (
    <div className="field">
      <label htmlFor="token">{t('keys.kindWorker')}</label>
      <input
        id="token"
        type="password"
        autoComplete="off"
        spellCheck={false}
        value={values.token}
        {...describedBy('token', error, true)}
        onChange={(event) => change({ token: event.target.value })}
      />
      <FieldNotes
        id="token"
        error={error}
        hint={t.rich('serve.tokenFrom', {
          keys: linkTo('/keys'),
        })}
      />
      <Switch
        name={t('serve.remember')}
        checked={values.remember}
        onChange={(remember) => change({ remember })}
      />
    </div>
  );
  return (
    <form
      className="panel connect"
      aria-labelledby="connect-title"
      onSubmit={(event) => {
        event.preventDefault();
        onConnect();
      }}
    >
      <h2 id="connect-title">{t('serve.connectTab')}</h2>
      <fieldset className="stack gap-20" disabled={connected}>
        {signedIn ? (
          <div className="field stack gap-8">
            <p className="info">{t('serve.tokenMade')}</p>
            <details className="more" open={tokenError !== null || undefined}>
              <summary>{t('serve.otherToken')}</summary>
              {tokenField}
            </details>
          </div>
        ) : (
          tokenField
        )}
        <div className="field">
          <label htmlFor="name">{t('serve.workerName')}</label>
          <input
            id="name"
            type="text"
            maxLength={100}
            required
            value={values.name}
            onChange={(event) => change({ name: event.target.value })}
          />
        </div>
        <ModelField
          list={models}
          model={model}
          report={report}
          backend={values.backend}
          onChange={(id) => change({ model: id })}
        />
        <BackendField backend={values.backend} onChange={(backend) => change({ backend })} />
        {!connected && (
          <button type="submit" className="primary" disabled={!model?.ready}>
            {t('serve.connect')}
          </button>
        )}
      </fieldset>
    </form>
  );
}
