/** `npm run build:commands`: makes the pages and workers that commands drive, which each makes anew without it. */
import { makePages } from '../browser/page-bundle';

await makePages();
