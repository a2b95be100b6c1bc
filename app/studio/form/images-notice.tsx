import { t } from '../../texts';
import '../../texts/en/files';
import '../../texts/en/form';

/** Offers to make a video of each of the images that came at once. */
export function ImagesNotice({ count, onAdd }: { count: number; onAdd: () => void }) {
  return (
    <div className="info">
      <p>{t('files.severalImages', { count })}</p>
      <div className="actions">
        <button type="button" className="small" onClick={onAdd}>
          {t('form.addToQueue', { count })}
        </button>
      </div>
    </div>
  );
}
