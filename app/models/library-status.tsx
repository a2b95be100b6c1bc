import { getLibrary } from '../library';
import type { LibraryState } from '../library-store';
import { Button } from '../shared/button';
import { Problem } from '../shared/messages';
import { t } from '../texts';
import '../texts/en/models';

/** The library while it opens, or why it cannot be; nothing once it is there. */
export function LibraryStatus({ library }: { library: LibraryState }) {
  if (library.status === 'loading') return <progress aria-label={t('models.openingLibrary')} />;
  if (library.status === 'ready') return null;
  return (
    <Problem error={library.error}>
      <Button onClick={() => getLibrary().restart()}>{t('common.tryAgain')}</Button>
    </Problem>
  );
}
