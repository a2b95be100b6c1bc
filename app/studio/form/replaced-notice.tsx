import { type Dispatch, type ReactNode, useEffect, useRef } from 'react';
import { useObjectUrl } from '../../shared/browser';
import { Button } from '../../shared/button';
import { Picture } from '../../shared/icons';
import { t } from '../../texts';
import '../../texts/en/form';
import type { FormAction, FormState } from './form-state';
import type { SharedFiles } from './use-launched-files';

type Content = Pick<FormState, 'values' | 'files'>;

/** Offers to bring back what was in the form before something replaced it. */
export function ReplacedNotice(props: {
  last: FormState['replaced'][number];
  change: Dispatch<FormAction>;
}) {
  const { last, change } = props;
  const { by, values, files } = last;
  return (
    <Notice
      title={t('form.replaced.title')}
      text={t('form.replaced.text', { by })}
      content={last}
      imageText={(name) => t('form.replaced.image', { name })}
    >
      <Button onClick={() => change({ type: 'undone', values, files })}>{t('form.undo')}</Button>
      <Button onClick={() => change({ type: 'replacementsKept' })}>{t('shared.close')}</Button>
    </Notice>
  );
}

/** Asks whether files that came by the share target are to be used, and shows what they would replace. */
export function SharedQuestion({ shared, content }: { shared: SharedFiles; content: Content }) {
  const names = shared.files
    .map(({ name }) => name)
    .reduce((first, second) => t('shared.listOf', { first, second }));
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    place.current?.scrollIntoView({ block: 'nearest' });
  }, []);
  return (
    <div ref={place} className="shared-question">
      <Notice
        title={t('form.shared.title')}
        text={t('form.shared.text', { names })}
        content={content}
        imageText={(name) => t('form.shared.now', { name })}
      >
        <Button className="primary" onClick={shared.use}>
          {t('form.shared.use')}
        </Button>
        <Button onClick={shared.discard}>{t('form.shared.discard')}</Button>
      </Notice>
    </div>
  );
}

function Notice(props: {
  title: string;
  text: string;
  /** What is replaced. */
  content: Content;
  imageText: (name: string) => string;
  children: ReactNode;
}) {
  const { title, text, content, imageText, children } = props;
  const { image } = content.files;
  const { prompt } = content.values;
  const url = useObjectUrl(image?.file);
  return (
    <section className="replaced info stack break" aria-label={title}>
      <p>{text}</p>
      <div className="row gap-12">
        {image && url ? (
          <Picture src={url} alt={imageText(image.name)} />
        ) : (
          <span className="field-hint">{t('form.replaced.noImage')}</span>
        )}
        {prompt.trim() === '' ? (
          <span className="field-hint">{t('form.replaced.noPrompt')}</span>
        ) : (
          <q className="clamp min-0">{prompt}</q>
        )}
      </div>
      <div className="actions">{children}</div>
    </section>
  );
}
