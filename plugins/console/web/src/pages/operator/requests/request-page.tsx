/** One request on a page of its own, for links from elsewhere. */
import { useParams } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { Page, Panel } from '../../../parts/page.tsx';
import { Story } from './story.tsx';

export default function RequestPage() {
  const { t } = useTranslation();
  const { id = '' } = useParams({ strict: false }) as { id?: string };
  return (
    <Page title={t('client.usage.request')}>
      <Panel>
        <Story id={id} />
      </Panel>
    </Page>
  );
}
