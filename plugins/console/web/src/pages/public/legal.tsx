/** Terms of use or imprint, as the operator wrote them. */
import { Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { get } from '../../api/client.ts';
import { Markdown } from '../../parts/markdown.tsx';
import { Panel } from '../../parts/page.tsx';
import { ErrorState, Waiting } from '../../parts/states.tsx';
import { PublicFrame } from './public-frame.tsx';

export default function Legal() {
  const { t } = useTranslation();
  const { name } = useParams({ strict: false }) as { name: 'terms' | 'imprint' };
  const title = t(`entry.legal.${name === 'imprint' ? name : 'terms'}`);
  const path = `/public/legal/${encodeURIComponent(name)}`;
  const text = useQuery({ queryKey: [path], queryFn: () => get<{ readonly markdown: string }>(path) });
  return (
    <PublicFrame title={title}>
      <Title order={1} fz="xl" mb="md">
        {title}
      </Title>
      {text.isPending && <Waiting height={320} />}
      {text.isError && <ErrorState error={text.error} onRetry={() => void text.refetch()} />}
      {text.data !== undefined && (
        <Panel>
          <Markdown text={text.data.markdown} />
        </Panel>
      )}
    </PublicFrame>
  );
}
