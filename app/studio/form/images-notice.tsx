import { t } from '../../texts';
import '../../texts/en/files';

/** Says that a video is made of each of the images that came at once. */
export function ImagesNotice({ count, onFirstOnly }: { count: number; onFirstOnly: () => void }) {
  return (
    <div className="info">
      <p>{t('files.severalImages', { count })}</p>
      <div className="actions">
        <button type="button" className="small" onClick={onFirstOnly}>
          {t('files.firstImageOnly')}
        </button>
      </div>
    </div>
  );
}
