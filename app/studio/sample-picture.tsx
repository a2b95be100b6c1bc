import { sampleImagePath } from '../../lib/contract/parameters';
import { appPath } from '../../lib/contract/site';
import { Picture } from '../shared/icons';

/** In the page from the start, so that the browser fetches it while the scripts load. */
export function SamplePicture() {
  return <Picture src={appPath(sampleImagePath)} alt="" width={1280} height={720} />;
}
