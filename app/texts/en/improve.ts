import { addTexts } from '../english';
import improve from './improve.json';

addTexts({ improve });
