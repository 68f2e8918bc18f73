/** Recorded bodies of a request and its answer. They are fetched on a click, because each look leaves an audit row. */
import { Button, Group, Stack, Text } from '@mantine/core';
import { IconEye, IconTrash } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { get, send } from '../../../api/client.ts';
import { CodeBlock } from '../../../parts/code-block.tsx';
import { bytesText } from '../../../parts/format.ts';
import { Time } from '../../../parts/time.tsx';
import { ReplayLink } from '../../client/replay-link.tsx';
import { ActButton } from '../parts/act.tsx';
import { answerKey, Loaded } from '../parts/load.tsx';
import { shortId } from '../parts/names.tsx';
import type { KeptBodies, KeptBody } from '../types.ts';
import { storyPath } from './story-path.ts';

export function Bodies({ id }: { readonly id: string }) {
  const { t } = useTranslation();
  const [requested, setRequested] = useState(false);
  if (requested) return <Shown id={id} />;
  return (
    <Stack gap={6} align="flex-start">
      <Button variant="default" size="xs" leftSection={<IconEye size={15} />} onClick={() => setRequested(true)}>
        {t('operator.traffic.bodies.show')}
      </Button>
      <Text fz="xs" c="dimmed">
        {t('operator.traffic.bodies.audited')}
      </Text>
    </Stack>
  );
}

function Shown({ id }: { readonly id: string }) {
  const { t } = useTranslation();
  const path = `${storyPath(id)}/bodies`;
  const bodies = useQuery({
    queryKey: answerKey(path),
    queryFn: ({ signal }) => get<KeptBodies>(path, {}, signal),
    // Each look is written down: none is made by itself, and nothing is left behind.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  return (
    <Loaded of={bodies} height={120}>
      {({ kept }) =>
        kept === null ? (
          <Text fz="sm" c="dimmed">
            {t('operator.traffic.bodies.none')}
          </Text>
        ) : (
          <Stack gap="sm">
            <OneBody title={t('operator.traffic.bodies.request')} body={kept.request} />
            <OneBody title={t('operator.traffic.bodies.answer')} body={kept.answer} />
            <Group gap="md" justify="space-between">
              <Text fz="xs" c="dimmed" component="div">
                {t('operator.traffic.bodies.until')} <Time at={kept.expiresAt} />
              </Text>
              <Group gap="xs">
                {kept.request !== null && <ReplayLink id={id} />}
                <Forget id={id} path={path} />
              </Group>
            </Group>
          </Stack>
        )
      }
    </Loaded>
  );
}

function OneBody({ title, body }: { readonly title: string; readonly body: KeptBody | null }) {
  const { t, i18n } = useTranslation();
  if (body === null)
    return (
      <Text fz="sm" c="dimmed">
        {t('operator.traffic.bodies.empty', { title })}
      </Text>
    );
  const size = bytesText(body.bytes, i18n.language);
  return (
    <div>
      <CodeBlock label={title} title={[title, body.mediaType, size].filter(Boolean).join(' · ')} text={body.text} />
      {body.leftOut > 0 && (
        <Text fz="xs" c="dimmed" mt={4}>
          {t('operator.traffic.bodies.leftOut', { bytes: bytesText(body.leftOut, i18n.language) })}
        </Text>
      )}
    </div>
  );
}

function Forget({ id, path }: { readonly id: string; readonly path: string }) {
  const { t } = useTranslation();
  return (
    <ActButton
      look={{ variant: 'subtle', color: 'red', leftSection: <IconTrash size={15} /> }}
      title={t('operator.traffic.bodies.forgetTitle', { name: shortId(id) })}
      text={t('operator.traffic.bodies.forgetText')}
      action={t('operator.traffic.bodies.forget')}
      danger
      stale={[answerKey(path)]}
      act={async (reason) => {
        await send('DELETE', path, { reason });
        return t('operator.traffic.bodies.forgotten');
      }}
    />
  );
}
