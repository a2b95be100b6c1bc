import { type ReactNode, useId } from 'react';
import { t } from '../texts';
import { Button } from './button';

const shown = { video: 'shared.showVideo', preview: 'shared.showPreview' } as const;

/**
 * Blurs its content until the button over it is pressed; the same button blurs it again. Blurred content is
 * hidden from keyboard and screen readers.
 */
export function Veil(props: {
  /** Why the content is blurred; null shows it as it is. */
  reason: string | null;
  what: 'video' | 'preview';
  revealed: boolean;
  onToggle: () => void;
  children: ReactNode;
}) {
  const { reason, what, revealed, onToggle, children } = props;
  const id = useId();
  const blurred = reason !== null && !revealed;
  return (
    <div className="veil" data-blurred={blurred}>
      <div className="veil-content" inert={blurred}>
        {children}
      </div>
      {reason !== null && (
        <div className="veil-cover">
          {blurred && <p id={id}>{reason}</p>}
          <Button className="small" aria-describedby={blurred ? id : undefined} onClick={onToggle}>
            {blurred ? t(shown[what]) : t('shared.blurAgain')}
          </Button>
        </div>
      )}
    </div>
  );
}
