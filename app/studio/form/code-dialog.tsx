import { useState } from 'react';
import { type LoraEntry, nativeSizeOf, type RunOptions, sizeInPixels } from '../../../lib/contract';
import { CopyButton } from '../../docs/copy-button';
import { Modal } from '../../models/modal';
import { downloadFile } from '../../shared/browser';
import { Button } from '../../shared/button';
import { linkTo } from '../../shared/link';
import { ProblemAlert } from '../../shared/messages';
import { hasServer } from '../../shared/server';
import { useTask } from '../../shared/task';
import { pickModel, useModels } from '../../shared/use-models';
import { t } from '../../texts';
import '../../texts/en/code';
import type { ChosenImage, FormState, ImageName } from './form-state';
import {
  type CodeLanguage,
  codeLanguages,
  framedName,
  isFramed,
  requestCode,
} from './request-code';

/** The form as code, in the language of one's choice. */
export function CodeDialog(props: {
  form: FormState;
  options: RunOptions;
  library: readonly LoraEntry[];
  onClose: () => void;
}) {
  const { form, options, library, onClose } = props;
  const [language, setLanguage] = useState<CodeLanguage>('curl');
  // A copy of the app without a server is not where the API is.
  const origin = hasServer ? window.location.origin : 'https://kinora.example';
  const sourceOf = (name: string) => library.find((lora) => lora.name === name)?.source;
  const text = requestCode(language, form, options, origin, sourceOf);
  const framed = (['image', 'lastImage'] as const).flatMap((which) => {
    const image = form.files[which];
    return image && isFramed(image.framing) ? [{ which, image }] : [];
  });
  const models = useModels();
  const task = useTask();

  const saveFramed = ({ file, name, framing }: ChosenImage, which: ImageName) =>
    task.run(async () => {
      const { model, size, profile } = form.values;
      const listed = models.status === 'ready' ? pickModel(models.models, model) : undefined;
      const video = sizeInPixels(size);
      const manifest = listed?.manifest;
      const frame = manifest ? nativeSizeOf(manifest, manifest.profiles[profile], size) : video;
      const { framedPng } = await import('../../../lib/video/frame-image');
      downloadFile(await framedPng(file, framing, frame, video), framedName(name, which));
    });

  const name = t(`code.codeNames.${language}`);
  const buttons = (
    <>
      <CopyButton
        label={t('code.copyRequestAs', { name })}
        words={{
          copy: t('code.copy'),
          copied: t('code.copied'),
          byHand: t('code.copyByHand'),
        }}
        text={text}
      />
      {framed.map(({ which, image }) => (
        <Button key={which} disabled={task.busy} onClick={() => saveFramed(image, which)}>
          {t(which === 'image' ? 'code.saveFramed' : 'code.saveFramedEnd')}
        </Button>
      ))}
    </>
  );
  return (
    <Modal title={t('code.codeTitle')} width={760} buttons={buttons} onClose={onClose}>
      <div className="words">
        {codeLanguages.map((one) => (
          <Button
            key={one}
            className="word"
            aria-pressed={one === language}
            onClick={() => setLanguage(one)}
          >
            {t(`code.codeNames.${one}`)}
          </Button>
        ))}
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <pre className="request-code bordered rounded on-sunken text-s" tabIndex={0}>
        <code>{text}</code>
      </pre>
      <p className="field-hint">
        {language === 'command'
          ? t.rich('code.commandHint', { code: (command) => <code>{command}</code> })
          : t.rich('code.codeHint', {
              code: (file) => <code>{file}</code>,
              serve: linkTo('/serve'),
              keys: linkTo('/keys'),
              docs: linkTo('/docs#quick-start'),
              api: linkTo('/docs/api'),
            })}
      </p>
      <ProblemAlert error={task.problem} />
    </Modal>
  );
}
