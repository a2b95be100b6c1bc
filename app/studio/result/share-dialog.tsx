import { useEffect, useReducer, useRef, useState } from 'react';
import {
  type ErrorRecord,
  formatBytes,
  isLoopback,
  type Prediction,
  toKinoraError,
} from '../../../lib/contract';
import { ApiError, type ShareInclude, sharedRequestOf } from '../../../lib/contract/v3';
import { TransportError } from '../../../lib/worker/transport-error';
import { Modal } from '../../models/modal';
import { getRunner } from '../../runner';
import { downloadFile } from '../../shared/browser';
import { Button } from '../../shared/button';
import { Switch } from '../../shared/fields';
import { linkTo } from '../../shared/link';
import { HelpLink } from '../../shared/messages';
import { imagesOf } from '../../shared/saved-video';
import { hasServer } from '../../shared/server';
import {
  forgetSession,
  mayBeSignedIn,
  sharedAfterSignIn,
  signInToShare,
} from '../../shared/session';
import { errorTexts, t } from '../../texts';
import '../../texts/en/share';
import { formatDate } from '../../texts/format';
import { changeShare, type ShareEvent, type ShareState } from './share-state';
import { shareVideo, unshareVideo } from './share-video';

type Completed = Extract<Prediction, { status: 'completed' }>;

/** The button that shares a finished video, with its dialog: by a link of this server, or as a file. */
export function ShareButton(props: { prediction: Completed; file: File | null; name: string }) {
  const { prediction, file, name } = props;
  const [state, change] = useReducer(changeShare, prediction.id, opened);
  useEffect(() => {
    if (sharedAfterSignIn() !== null) history.replaceState(null, '', location.pathname);
  }, []);
  const [include, setInclude] = useState<ShareInclude>({
    prompt: true,
    settings: true,
    image: false,
  });
  const upload = useRef<AbortController>(null);

  const close = () => {
    upload.current?.abort();
    change({ type: 'closed' });
  };
  async function share(video: File): Promise<void> {
    const running = new AbortController();
    const { signal } = running;
    upload.current = running;
    change({ type: 'started' });
    try {
      const link = await shareVideo({
        prediction,
        file: video,
        share: { include: { ...include, image: false }, allow_index: false },
        onProgress: (fraction) => change({ type: 'sent', fraction }),
        signal,
      });
      change({ type: 'shared', link });
    } catch (thrown) {
      if (signal.aborted) return;
      change({ type: 'failed', problem: problemOf(thrown) });
    }
  }

  async function revoke(): Promise<void> {
    try {
      await unshareVideo(prediction.id);
      change({ type: 'opened' });
    } catch (thrown) {
      change({ type: 'failed', problem: problemOf(thrown) });
    }
  }

  return (
    <>
      <Button disabled={!file} onClick={() => change({ type: 'opened' })}>
        {t('share.share')}
      </Button>
      {file && state.status !== 'closed' && (
        <Modal
          title={t('share.shareTitle')}
          width={520}
          close={state.status === 'uploading' ? t('share.cancel') : t('shared.close')}
          onClose={close}
        >
          {state.status === 'choosing' && (
            <>
              <IncludeChoice include={include} onInclude={setInclude} />
              <FileChoice
                prediction={prediction}
                include={include}
                onInclude={setInclude}
                file={file}
                name={name}
              />
              <LinkChoice
                id={prediction.id}
                bytes={file.size}
                problem={state.problem}
                onShare={() => void share(file)}
              />
            </>
          )}
          {state.status === 'uploading' && (
            <label>
              {t('share.uploading', { percent: Math.floor(state.sent * 100) })}
              <progress className="mt-8" value={state.sent} max={1} />
            </label>
          )}
          {state.status === 'shared' && (
            <Shared {...state} change={change} onRevoke={() => void revoke()} />
          )}
        </Modal>
      )}
    </>
  );
}

/** The dialog is open where the Keys page has led back to it. */
const opened = (id: string): ShareState =>
  id === sharedAfterSignIn() ? { status: 'choosing', problem: null } : { status: 'closed' };

interface Inclusion {
  include: ShareInclude;
  onInclude: (include: ShareInclude) => void;
}

/** Whether one part is told. */
function Part({ name, include, onInclude }: Inclusion & { name: keyof ShareInclude }) {
  return (
    <Switch
      name={t(`share.showPart.${name}`)}
      checked={include[name]}
      onChange={(shown) => onInclude({ ...include, [name]: shown })}
    />
  );
}

/** What a shared video tells, as a file and by a link. */
function IncludeChoice(props: Inclusion) {
  return (
    <fieldset className="field">
      <legend>{t('share.shareWith')}</legend>
      <Part name="prompt" {...props} />
      <Part name="settings" {...props} />
      <p className="field-hint">{t('share.shareWithHint')}</p>
    </fieldset>
  );
}

/** The system's share sheet where the browser has one for files, else a download; of a copy with what is shown. */
function FileChoice(props: Inclusion & { prediction: Completed; file: File; name: string }) {
  const { prediction, file, name, include, onInclude } = props;
  const [copy, setCopy] = useState<File | ErrorRecord | null>(null);
  const [hasImage, setHasImage] = useState(false);
  // Made before it is asked for: a share sheet opens only at once after a click.
  useEffect(() => {
    let current = true;
    publicFile(prediction, include, file, name).then(
      (prepared) => {
        if (!current) return;
        setCopy(prepared.copy);
        setHasImage(prepared.hasImage);
      },
      (thrown: unknown) => current && setCopy(toKinoraError(thrown).toRecord()),
    );
    return () => {
      current = false;
      setCopy(null);
    };
  }, [prediction, include, file, name]);
  const [readyFile, problem] = copy instanceof File ? [copy, null] : [null, copy];
  const hasSheet = navigator.canShare?.({ files: [file] }) === true;
  const save = (shared: File) => {
    if (!hasSheet) return downloadFile(shared, name);
    // A sheet that is closed is no failure.
    void navigator.share({ files: [shared] }).catch(() => {});
  };
  return (
    <section className="part-of-dialog stack gap-12 ruled">
      <h3>{t('share.asFile')}</h3>
      {hasImage && <Part name="image" include={include} onInclude={onInclude} />}
      <Button disabled={!readyFile} onClick={() => readyFile && save(readyFile)}>
        {hasSheet ? t('share.shareFile') : t('share.downloadFile')}
      </Button>
      {problem && (
        <p className="field-error" role="alert">
          {errorTexts(problem).message}
        </p>
      )}
    </section>
  );
}

/** Makes the copy, and tells whether there are images that it may hold. */
async function publicFile(
  prediction: Completed,
  include: ShareInclude,
  file: File,
  name: string,
): Promise<{ copy: File; hasImage: boolean }> {
  const { toSharedTags, withTags } = await import('../../../lib/video/metadata');
  const images = await imagesOf(getRunner().store, prediction);
  const shown = include.image ? images : null;
  const request = sharedRequestOf(prediction, include);
  const tells = include.prompt || include.settings || include.image;
  const copy = tells
    ? await withTags(file, toSharedTags(request, prediction.options, shown))
    : file;
  const hasImage = images.start_image !== undefined;
  return { copy: new File([copy], name, { type: 'video/mp4' }), hasImage };
}

function LinkChoice(props: {
  id: string;
  bytes: number;
  problem: string | null;
  onShare: () => void;
}) {
  const { id, bytes, problem, onShare } = props;
  if (!hasServer) return null;
  const canUpload = mayBeSignedIn();
  return (
    <section className="part-of-dialog stack gap-12 ruled">
      <h3>{t('share.byLink')}</h3>
      {canUpload ? (
        <>
          <p className="field-hint">{t('share.uploadHint', { bytes: formatBytes(bytes) })}</p>
          {isLoopback(location.href) && (
            <p className="info on-sunken">
              {t('share.pageIsLocal')} <HelpLink to="sharing-reach" />
            </p>
          )}
          <Button className="primary" onClick={onShare}>
            {t('share.upload')}
          </Button>
        </>
      ) : (
        <p className="field-hint">
          {t.rich('share.signIn', {
            keys: linkTo(signInToShare(id)),
          })}
        </p>
      )}
      {problem && (
        <p className="field-error" role="alert">
          {problem}
        </p>
      )}
    </section>
  );
}

function Shared(props: {
  link: { readonly url: string; readonly expires_at: string };
  copied: boolean;
  change: (event: ShareEvent) => void;
  onRevoke: () => void;
}) {
  const { link, copied, change, onRevoke } = props;
  const copy = () => {
    navigator.clipboard.writeText(link.url).then(
      () => change({ type: 'copied' }),
      () => {}, // Without permission, the user can still select the link on the page.
    );
  };
  return (
    <section className="stack gap-12">
      <p className="break">
        <a href={link.url} target="_blank" rel="noreferrer">
          {link.url}
        </a>
      </p>
      {isLoopback(link.url) && (
        <p className="info on-sunken">
          {t('share.linkIsLocal')} <HelpLink to="sharing-reach" />
        </p>
      )}
      <p className="field-hint">
        {t.rich('share.linkEnds', {
          date: formatDate(link.expires_at, { dateStyle: 'long' }),
          keys: linkTo('/keys'),
        })}
      </p>
      <div className="actions">
        <Button className="primary" onClick={copy}>
          {copied ? t('share.copied') : t('share.copyLink')}
        </Button>
        <Button className="danger" onClick={onRevoke}>
          {t('share.unshare')}
        </Button>
      </div>
    </section>
  );
}

function problemOf(thrown: unknown): string {
  if (!(thrown instanceof ApiError)) {
    if (thrown instanceof TransportError) return t('share.unreachable');
    return errorTexts(toKinoraError(thrown)).message;
  }
  if (thrown.code !== 'UNAUTHORIZED') return thrown.fullMessage;
  forgetSession();
  return t('share.sessionEnded');
}
