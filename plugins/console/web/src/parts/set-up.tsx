/** How each kind of client is set up for this gateway: pick the client and the model, copy, call. */
import { Chip, Group, Select, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { modelsQuery } from '../api/models.ts';
import { useMe } from '../api/session.ts';
import { allTools, fill, keyPlaceholder, type Tool } from '../snippets/index.ts';
import { templateOf } from '../snippets/templates.ts';
import { CodeBlock } from './code-block.tsx';

interface SetUpProps {
  /** The key, while it is known. */
  readonly secret?: string;
}

export function SetUp({ secret }: SetUpProps) {
  const { t } = useTranslation();
  const [tool, setTool] = useState<Tool>(allTools[0]!);
  const [chosen, setChosen] = useState<string | null>(null);
  const models = useChatModels();
  const model = chosen ?? models[0] ?? 'model';
  const filling = { base: useMe().gateway.origin, key: secret ?? keyPlaceholder, model };
  return (
    <Stack gap="sm">
      <Chip.Group value={tool.id} onChange={(id) => setTool(allTools.find((one) => one.id === id) ?? tool)}>
        <Group gap={6} role="radiogroup" aria-label={t('client.setUp.client')}>
          {allTools.map(({ id, name }) => (
            <Chip key={id} value={id} size="xs" variant="light" radius="md">
              {name}
            </Chip>
          ))}
        </Group>
      </Chip.Group>
      {models.length > 1 && (
        <Select
          size="xs"
          maw={280}
          label={t('client.setUp.model')}
          data={models}
          value={model}
          onChange={setChosen}
          searchable
          allowDeselect={false}
        />
      )}
      {tool.files.map(({ template, saveAs }) => (
        <CodeBlock key={template} text={fill(templateOf(template), filling)} title={saveAs} label={tool.name} />
      ))}
      {secret === undefined && (
        <Text fz="xs" c="dimmed">
          {t('client.setUp.keyHint', { placeholder: keyPlaceholder })}
        </Text>
      )}
    </Stack>
  );
}

/** Ids of chat models that this person's plan has. */
function useChatModels(): readonly string[] {
  const { data } = useQuery(modelsQuery);
  return (data?.rows ?? []).filter(({ kind, allowed }) => kind === 'chat' && allowed).map(({ id }) => id);
}
