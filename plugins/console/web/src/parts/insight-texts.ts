/** The English texts of saved views and figures from usage come with the parts that show them; the other languages have them from the start. */
import i18next from 'i18next';
import insights from '../texts/en/insights.ts';

i18next.addResourceBundle('en', 'translation', { client: insights }, true);
