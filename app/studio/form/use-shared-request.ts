import { type Dispatch, useEffect, useEffectEvent } from 'react';
import { type KinoraError, toKinoraError } from '../../../lib/contract';
import { t } from '../../texts';
import '../../texts/en/form';
import type { FormAction } from './form-state';

/**
 * Fills the form with the request of a shared video, where the page was opened by "Open in Kinora" of its page:
 * what its owner shows, and nothing else changes.
 *
 * @param ready whether the draft is restored, which would overwrite the request
 */
export function useSharedRequest(
  ready: boolean,
  change: Dispatch<FormAction>,
  showError: (error: KinoraError) => void,
): void {
  const fill = useEffectEvent(async (id: string) => {
    try {
      const { readSharedRequest } = await import('./shared-request');
      const { values, image, lastImage } = await readSharedRequest(id);
      const by = t('form.sharedLink');
      const images = { image: image ?? undefined, lastImage: lastImage ?? undefined };
      change({ type: 'replaced', by, values, ...images });
    } catch (thrown) {
      showError(toKinoraError(thrown));
    }
  });
  useEffect(() => {
    const id = new URLSearchParams(window.location.search).get('share');
    if (!ready || id === null) return;
    window.history.replaceState(null, '', window.location.pathname);
    void fill(id);
  }, [ready]);
}
