import Link from 'next/link';
import { useState } from 'react';
import type { LoraEntry } from '../../lib/contract/library';
import { CopyButton } from '../docs/copy-button';
import { Modal } from '../models/modal';
import { hasServer } from '../shared/server';
import './code-dialog.css';
import type { FormState } from './form-state';
import { type CodeLanguage, codeLanguages, requestCode } from './request-code';

const names: Readonly<Record<CodeLanguage, string>> = {
  curl: 'curl',
  javascript: 'JavaScript',
  python: 'Python',
  command: 'Command',
};

/** The form as code, in the language of one's choice. */
export function CodeDialog(props: {
  form: FormState;
  library: readonly LoraEntry[];
  onClose: () => void;
}) {
  const { form, library, onClose } = props;
  const [language, setLanguage] = useState<CodeLanguage>('curl');
  // A copy of the app without a server is not where the API is.
  const origin = hasServer ? window.location.origin : 'https://kinora.example';
  const sourceOf = (name: string) => library.find((lora) => lora.name === name)?.source;
  const text = requestCode(language, form, origin, sourceOf);
  const name = names[language];
  return (
    <Modal titleId="code-title" className="code-dialog" onClose={onClose}>
      <h2 id="code-title">This request as code</h2>
      <div className="words">
        {codeLanguages.map((one) => (
          <button
            key={one}
            type="button"
            className="word"
            aria-pressed={one === language}
            onClick={() => setLanguage(one)}
          >
            {names[one]}
          </button>
        ))}
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <pre className="request-code" tabIndex={0}>
        <code>{text}</code>
      </pre>
      <p className="field-hint">
        {language === 'command' ? (
          <>
            Runs in the folder of Kinora, with the files of this request. All options:{' '}
            <code>npm run generate -- --help</code>
          </>
        ) : (
          <>
            Makes <code>video.mp4</code> through the API, with the files of this request in the
            folder where it runs. A tab on the page{' '}
            <Link href="/serve" prefetch={false}>
              Serve
            </Link>{' '}
            computes the video; keys are on the page{' '}
            <Link href="/keys" prefetch={false}>
              Keys
            </Link>
            , and everything else is in the{' '}
            <Link href="/docs#quick-start" prefetch={false}>
              documentation
            </Link>{' '}
            and the{' '}
            <Link href="/docs/api" prefetch={false}>
              list of endpoints
            </Link>
            .
          </>
        )}
      </p>
      <div className="actions">
        <CopyButton what={`the request as ${name}`} text={text} />
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Modal>
  );
}
