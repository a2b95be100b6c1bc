import { addTexts } from '../english';
import run from './run.json';

addTexts({ run });
