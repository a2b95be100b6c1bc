import { addTexts } from '../english';
import keys from './keys.json';

addTexts({ keys });
