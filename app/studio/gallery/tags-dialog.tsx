import { useId, useRef, useState } from 'react';
import type { Prediction } from '../../../lib/contract';
import { Modal } from '../../models/modal';
import { getRunner } from '../../runner';
import { Button } from '../../shared/button';
import { CloseIcon } from '../../shared/icons';
import { ProblemAlert } from '../../shared/messages';
import { useTask } from '../../shared/task';
import { t } from '../../texts';
import '../../texts/en/gallery';
import { tagsOf } from './gallery-state';

/** Longest tag, in characters. */
const maxTagLength = 40;

/** Adds tags to predictions, and removes them. */
export function TagsDialog(props: {
  predictions: readonly Prediction[];
  /** All tags that there are. */
  known: readonly string[];
  onClose: () => void;
}) {
  const { predictions, known, onClose } = props;
  const [text, setText] = useState('');
  const task = useTask();
  const input = useRef<HTMLInputElement>(null);
  const id = useId();
  const tags = tagsOf(predictions);

  const change = (tag: string, on: boolean) => {
    input.current?.focus();
    const { store } = getRunner();
    task.run(() =>
      Promise.all(
        predictions.map((prediction) => store.dispatch(prediction.id, { type: 'tagged', tag, on })),
      ),
    );
  };
  const add = () => {
    const typed = text.trim().replace(/\s+/g, ' ');
    setText('');
    if (typed) change(spelledAs(typed, known), true);
  };

  return (
    <Modal title={t('gallery.tagsOf', { count: predictions.length })} onClose={onClose}>
      <form
        className="input-row"
        onSubmit={(event) => {
          event.preventDefault();
          add();
        }}
      >
        <input
          ref={input}
          type="text"
          aria-label={t('gallery.newTag')}
          placeholder={t('gallery.newTag')}
          maxLength={maxTagLength}
          list={`${id}-known`}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <datalist id={`${id}-known`}>
          {known.map((tag) => (
            <option key={tag} value={tag} />
          ))}
        </datalist>
        <button type="submit">{t('gallery.add')}</button>
      </form>
      {tags.length > 0 && (
        <ul className="tags row wrap gap-4" aria-label={t('gallery.tags')}>
          {tags.map((tag) => (
            <li key={tag}>
              {tag}
              <Button
                aria-label={t('gallery.removeTag', { tag })}
                onClick={() => change(tag, false)}
              >
                <CloseIcon />
              </Button>
            </li>
          ))}
        </ul>
      )}
      <ProblemAlert error={task.problem} />
    </Modal>
  );
}

/** The tag as it is spelled already, in whatever case it was typed. */
function spelledAs(typed: string, known: readonly string[]): string {
  const lower = typed.toLowerCase();
  return known.find((tag) => tag.toLowerCase() === lower) ?? typed;
}
