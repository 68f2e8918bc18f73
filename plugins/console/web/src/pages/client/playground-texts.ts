/** The English texts of the playground come with the pages that show them; the other languages have them from the start. */
import i18next from 'i18next';
import playground from '../../texts/en/playground.ts';

i18next.addResourceBundle('en', 'translation', { client: playground }, true);
