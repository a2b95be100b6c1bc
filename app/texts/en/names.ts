import { componentTexts, phaseNames, profileTitles } from '../../../lib/contract/format';
import { outcomeNames } from '../../../lib/worker/serve-page';

/** Names that page and command line share. */
export const names = {
  phase: phaseNames,
  profile: profileTitles,
  component: componentTexts,
  outcome: outcomeNames,
};
