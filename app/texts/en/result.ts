import { addTexts } from '../english';
import result from './result.json';

addTexts({ result });
