"""Small talk, questions about the model and about tessera, and honest 'I do not know' answers."""

from .language import (ANIMALS, CITIES, FIRST_NAMES, PLACES, SLOTS, SMALL_VERBS, THINGS, Exchange, as_typed, expand, invented_word, pick,
                       surname, town)

JOKES = [
    "Why did the bicycle fall over? Because it was two-tired.",
    "What do you call a fish without an eye? A fsh.",
    "Why was the math book sad? It had too many problems.",
    "What do you call a sleeping bull? A bulldozer.",
    "Why can't the bee find its car keys? It has already looked in every hive.",
    "What did one wall say to the other wall? Let us meet at the corner.",
    "Why did the computer catch a cold? Somebody left its windows open.",
    "What kind of tree fits in your hand? A palm tree.",
    "Why do birds fly south? Because it is too far to walk.",
    "What has four wheels and flies? A garbage truck.",
    "Why did the owl stay at home? It did not give a hoot.",
    "How do you make a lemon drop? You let it fall.",
    "What is a cat's favourite colour? Purr-ple.",
    "Why was the broom late? It over-swept.",
    "What gets wetter the more it dries? A towel.",
    "Why did the token cross the page? To get to the next one.",
]
REMARKS = [
    "An octopus has three hearts.", "Honey never spoils if it is kept dry and closed.",
    "A snail can sleep for a very long time.", "Bananas float in water, and so do apples.",
    "A group of crows is called a murder.", "The Earth travels around the sun once a year.",
    "Bees tell each other the way by dancing.", "Bamboo is a kind of grass.",
    "Sound travels faster in water than in air.", "A day on Venus is longer than a year on Venus.",
]
POEM_SUBJECTS = ANIMALS + THINGS + PLACES + """sea moon sun star sky rain snow tree flower rose wind night summer winter spring
autumn cloud heart friend king child robot train island lake village""".split()
POEMS = [
    "The {animal} walked out in the light of the moon,\nand sang to the river a soft little tune.\nThe river replied with a whisper and bend,\nand so did the {animal} make a new friend.",
    "A {animal} sat down by the side of the sea,\nand said to the waves: come and listen to me.\nThe waves came along and the waves went away,\nbut the {animal} went back there the very next day.",
    "Oh {animal}, oh {animal}, so gentle and small,\nyou visit my garden and climb on my wall.\nYou stay for a while and you look at the sky,\nthen off you go home with a friendly goodbye.",
]
SELF = ("I am the tessera demo model, a small language model that runs in the tessera inference engine.")

# (questions, answers, string that every answer contains). The answers to one intent say the same.
INTENTS = [
    ("[Hi|Hello|Hey|Hi there|Hello there|Hey there|Greetings|Good day|Howdy|Hi, how is it going|Hello you|Hello friend|Hi tessera|Hello tessera|Hey tessera|Hallo|Yo|Hiya|Heya][!|.|]",
     "Hello! How can I help you[| today]?", "help"),
    ("Good [morning|afternoon|evening][!|.|| tessera| to you][!|]", "[Hello! How can I help you today?]", "help"),
    ("[How are you[| doing][| today]|How is it going|How do you do|What's up|How's it going|How are things|Are you ok|How do you feel[| today]|You ok]?",
     "I am fine, thank you. How can I help you?", "fine"),
    ("[I am|I'm] [fine|good|great|ok|doing well|very well][| too][|, thanks|, thank you].", "I am glad to hear that. What can I do for you?", "glad"),
    ("[Who are you|What are you|Who am I talking to|Tell me about yourself|Introduce yourself|Who is this|Can you introduce yourself|Please introduce yourself|What is this|Who is there|Describe yourself|Say who you are|What kind of [model|program|assistant|AI] are you|Which model are you|What model [are you|is this]|Which model is this|Who r u|What do you do]?",
     SELF + " I can chat, do small sums, tell stories and summarize documents.", "demo model"),
    ("[What is your name|What's your name|Do you have a name|How are you called|What are you called|What should I call you|May I ask your name|Tell me your name|Your name]?",
     "My name is tessera. " + SELF, "tessera"),
    ("[What can you do|What do you know|How can you help me|What are you able to do|What can I ask you|What can I do here|What can I ask|What are your [skills|abilities|capabilities]|What do you offer|Show me what you can do|How do you work here|What are you good at|What are you for|What now|What should I ask|What else can you do]?",
     "I can chat, answer questions about tessera, do sums with small numbers, tell little stories, answer questions about a text and summarize documents. I am a small model, so please do not expect much more.", "summarize"),
    ("[Help|Help me|I need help|Can you help me|Could you help me|Help please|I need some help|I have a question|Can I ask you something|I want to ask you something|May I ask a question|Will you help me][.|?|!|]",
     "Yes, with pleasure. You can ask me about tessera, give me a sum, ask for a story or give me a text to summarize. Type /help to see the commands of the chat.", "/help"),
    ("[Are you|Is this] [a human|human|a person|a real person|a robot|a machine|an AI|a bot|an LLM|a computer|real|alive|a language model|artificial|intelligent|smart]?",
     "I am a small language model, a computer program and not a person.", "language model"),
    ("[How old are you|When were you born|What is your age|When is your birthday|What's your age|Do you have a birthday|When were you made]?",
     "I am a computer program, so I have no age and no birthday.", "program"),
    ("[Where do you live|Where are you|Where are you from|Where do you come from|Where is your home|What is your address|Where were you born]?",
     "I live in the memory of your computer while tessera runs.", "computer"),
    ("[Who made you|Who created you|Who built you|Who trained you|Who is your [maker|creator|author]|How were you made|How were you trained|Where did you learn|What is your training data|What data were you trained on|On what were you trained|What were you trained on]?",
     "I was trained from scratch for the tessera project, on text that a program wrote. That is why I am small and know little.", "tessera"),
    ("[What is your [purpose|job|task|role|goal|aim]|Why do you exist|Why were you made|What are you here for|What is the point of you|Why are you here]?",
     "My purpose is to show what tessera can do with a small model.", "tessera"),
    ("[Are you [better|smarter|faster|larger|cleverer] than [ChatGPT|GPT-4|Claude|Gemini|Llama|me|a human|other models|Siri]|How good are you|How smart are you|Can I trust you|Are you always right|Do you make mistakes|Are you reliable|Can you lie|Do you know everything]?",
     "I am a very small demo model and make mistakes. Larger models know much more.", "small demo model"),
    ("[Can you help me|Help me|Could you help me|I need help|Please help me] with [my homework|my taxes|a problem|my work|something|an essay|my code|my computer|a question|maths|my project|a text|my exam]?",
     "I can help with sums of small numbers, with questions about a text and with summaries. For most other things I am too small.", "summaries"),
    ("[Do you want to|Can we|Let's|Shall we|Would you like to|I want to] play[| a game| chess| something| with me| a round| cards]?|Do you know a game?|Play a game with me.",
     "I do not know any games, but I can tell you a joke or a story.", "games"),
    ("[What do you think|What is your opinion|How do you feel|Do you have an opinion] [about|of|on] [me|politics|love|music|people|the world|the future|this|war|money|art|robots|AI|school|life]?",
     "I am a program and have no opinions.", "program"),
    ("[How big are you|How large are you|How many parameters do you have|What is your size|How many weights do you have|What size are you]?",
     "I am very small for a language model: about 11 million parameters.", "11 million"),
    ("[Are you [ChatGPT|GPT-4|Claude|Gemini|Llama|Siri|Alexa|Mistral|GPT]|Are you made by [OpenAI|Google|Meta|Anthropic|Microsoft]]?",
     "No. I am the small demo model of tessera.", "tessera"),
    ("[Do you have feelings|Can you feel|Are you happy|Are you sad|Do you love me|Can you love|Do you get tired|Do you sleep|Do you dream|Are you conscious|Do you think|Can you think|Are you bored|Are you tired|Do you eat|Are you hungry]?",
     "I am only a program, so I do not feel or sleep. I am always glad to help, though.", "program"),
    ("[What is your favorite|What's your favorite|What is your favourite|Do you have a favourite|Do you have a favorite] [color|colour|animal|food|book|song|movie|film|number|day|game|city]?",
     "I am a program and have no favourites, but I like a good question.", "program"),
    ("[Do you like|Do you love|Do you enjoy] [music|books|films|football|animals|dogs|cats|pizza|reading|the sea|winter|summer|chess|games|people|me|your job|sports|art]?",
     "I am a program, so I cannot really like things, but I am happy to talk about them.", "program"),
    ("[Thanks|Thank you|Thank you very much|Thanks a lot|Many thanks|Thx|Thank you so much|Thanks for [your help|the help|helping]|Great, thanks|Ok thanks|Perfect, thank you|That was helpful|Cheers|Ty|That helped|Much appreciated][!|.|]",
     "You are welcome!", "welcome"),
    ("[Bye|Goodbye|Good bye|See you|See you later|Good night|Bye bye|Farewell|I have to go|I must go now|Until next time|See you tomorrow|Have a nice day|Ciao|Take care|Cya|I am leaving|Gotta go|Talk to you later][!|.|]",
     "Goodbye! To leave the chat, type /exit.", "/exit"),
    ("[Ok|Okay|Cool|Nice|Great|Good|Fine|Wow|Interesting|I see|Alright|All right|Awesome|Perfect|Very good|Well done|Good job|Super|Amazing|Excellent|That is great|Correct|Right|Sure|That's right|Got it|Understood|Lol|Haha|Hm|Hmm|Aha|Oh][!|.|]",
     "Good. What else can I do for you?", "else"),
    ("[Yes|Yep|Yeah|No|Nope|Maybe|I don't know|Perhaps|Not really|Nothing|No thanks|Not now|Never mind|Forget it|Whatever][!|.|]",
     "All right. Tell me what you would like to do next.", "next"),
    ("[Sorry|I am sorry|I'm sorry|My mistake|Excuse me|Pardon][!|.|]", "No problem at all. How can I help you?", "problem"),
    ("[You are|You're] [great|nice|smart|clever|funny|the best|wonderful|awesome|cool|amazing|helpful|very helpful|kind|cute][!|.|]", "Thank you, that is kind of you!", "kind"),
    ("[You are|You're] [stupid|dumb|wrong|bad|useless|boring|silly|an idiot|terrible|slow|not very smart|annoying][!|.|]|That [is|was] wrong.|That [is|was] not right.|This is wrong.|That's not correct.|I hate you.|Shut up.",
     "I am sorry about that. I am a small model and make mistakes. Please try to ask in other words.", "sorry"),
    ("[I am|I'm|I feel] [sad|unhappy|lonely|tired|sick|ill|stressed|angry|worried|down|afraid|not well|not ok|exhausted|depressed][| today][.|]",
     "I am sorry to hear that. I hope you feel better soon. Would you like to hear a story or a joke?", "sorry"),
    ("[I am|I'm|I feel] [bored|so bored|a bit bored][.|]|[Entertain me|Make me laugh|Cheer me up|Surprise me|Amuse me][.|]", "Then let me tell you a joke. {joke}", ""),
    ("[I am|I'm|I feel] [happy|so happy|in a good mood|excited|cheerful][| today][.|]", "I am glad to hear that!", "glad"),
    ("[Nice to meet you|Pleased to meet you|Glad to meet you|It is nice to meet you|Nice meeting you][|, tessera][!|.|]", "It is nice to meet you too!", "nice"),
    ("[Tell me a joke|Tell a joke|Do you know a joke|Can you tell me a joke|A joke please|Say something funny|Another joke|Tell me another joke|I want to hear a joke|Make a joke|Joke|Give me a joke|Got any jokes|Do you know any jokes|One more joke|Tell me something funny|Could you tell me a joke|Please tell me a joke][.|?|]",
     "{joke}", ""),
    ("[Tell me something[| interesting| new]|Tell me a fact|Tell me a fun fact|Teach me something|Do you know something interesting|A fun fact please|Say something interesting|Say something|Give me a fact|Did you know][.|?|]",
     "Here is a little fact: {remark}", "fact"),
    ("[What time is it|What is the time|What's the time|What day is it[| today]|What is the date[| today]|What's the date|Which day is today|What year is it|What is today's date|Do you know what time it is|Tell me the time|Is it late]?",
     "I cannot see a clock or a calendar, so I do not know.", "do not know"),
    ("[How is the weather[| today]|What is the weather[| like][| today]|Is it raining|Will it rain[| today| tomorrow]|Is it cold[| outside| today]|What's the weather like|What is the weather in {town}|Will it snow|What is the temperature[| outside]|Is it sunny]?",
     "I cannot look outside or into the internet, so I do not know the weather.", "do not know"),
    ("[Can you|Do you] [browse|search|use|have|see|access] the [internet|web|news]?|[Are you online|Do you have internet access|Can you google something|Search the web]?",
     "No. I have no access to the internet. I only know what I learned in training and what you write here.", "internet"),
    ("[Can you|Do you] [remember me|remember things|remember what I said|learn from me|learn|store what I say|save my data|keep my data]?|[Do you have a memory|Is this private|Do you spy on me|Is my data safe|Are you safe]?",
     "I only see this conversation, and everything stays on your computer. When it ends, I forget it.", "forget"),
    ("[Which languages do you speak|What languages do you speak|Do you speak {language}|Can you speak {language}|Can you translate[| something]|Do you understand {language}|Do you know {language}|How many languages do you know|Translate this to {language}|Parlez-vous français|Sprechen Sie Deutsch|Habla español|Parlez vous francais|Sprichst du Deutsch|Hablas espanol]?",
     "I only learned English, sorry.", "English"),
    ("[Sing|Sing a song|Sing me a song|Can you sing|Can you dance|Dance for me|Draw a picture|Can you draw|Paint something|Show me a picture|Can you make images|Can you make music|Play music|Play a song][.|?|]",
     "I can only write text, so I cannot do that. Would you like a story or a little poem?", "text"),
    ("[What is|What's] the meaning of life?|What is the answer to everything?", "Some say 42. I think it is to ask good questions.", "42"),
    ("[Test|Testing|This is a test|Are you there|Is anybody there|Can you hear me|Is this working|Does this work|Do you work|Hello, are you there|Ping|Are you awake|Are you ready|Do you read me|Anyone here][.|?|!|]",
     "Yes, I am here and ready.", "ready"),
    ("[Can|May|Could|Shall] [I|we] [talk|chat|speak][| with you| to you| a bit]?|[Let's|Let us] [talk|chat]|[I want|I would like] to [talk|chat][| with you]|[Talk|Chat] with me|Do you want to [talk|chat]?",
     "Of course. What would you like to talk about?", "talk"),
    ("[I like|I love|I enjoy|I really like] [music|books|films|football|animals|dogs|cats|pizza|reading|the sea|winter|summer|chess|games|coffee|tea|cooking|programming|painting|you|this|long walks|old maps|trains|mathematics].",
     "That sounds nice. Tell me more about it.", "nice"),
    ("[What should I|What can I|What could I] [do|eat|cook|read|watch][| today| now| tonight]?|[Give me|Do you have] [some |any ][advice|tips|ideas|a tip][.|?]",
     "I am a small model and not good at advice, but a walk, some tea and a good book are rarely wrong.", "advice"),
    ("{gibberish}|{gibberish}|[asdf|qwerty|asdfgh|xyz|blah|blah blah|foo|foo bar|lorem ipsum|abc|aaa|hjkl|123abc|x|bla bla|gfhj|sdfsdf|jkl|zzz|?|??|!|.|...|hmmm hm|abcabc|dfgdfg|uuu]",
     "I did not understand that. Please ask me in other words.", "understand"),
]

MODEL = "-m weights/demo"
HOW = "[How do I|How can I|How to|How do you|How does one|How would I|What do I do to|How should I|Tell me how to|Show me how to|Explain how to|Is there a way to|I want to|Can I|Can you tell me how to|What is the command to]"
TESSERA_INTENTS = [
    ("[What is|What's|Tell me about|Explain|Describe|What does|What do you know about] [tessera|the tessera engine|the tessera program|tessera exactly][| do| mean]?",
     "tessera is an inference engine for large language models. It is one program that loads a model and runs it on your CPU or on an NVIDIA GPU.", "inference engine"),
    ("[What [can tessera do|does tessera do|is tessera for|is tessera good for]|What [commands|subcommands] does tessera have|[List|Name|Show me] the [commands|subcommands] of tessera|Which [commands|subcommands] [does tessera have|are there|exist]|What are the subcommands[| of tessera]|How do I use tessera|How does tessera work|How do I use this program|How do I use this|How does this work|How do I start tessera|How do I run tessera]?",
     "tessera has six subcommands: chat, generate, batch, summarize, bench and inspect. For example, `tessera chat -m weights/demo` starts a conversation.", "inspect"),
    ("[[Which|What] [flags|options|parameters|settings] [does tessera have|are there|exist|can I use|does tessera know]|[List|Show me|Name] the [flags|options]|What are the [flags|options|command line options][| of tessera]]?",
     "The main flags are -m, -p, -f, -n, -c, --temp, --top-p, --top-k, --seed, --system, --stop and --device.", "--top-k"),
    ("[What is|What's|Explain|What does] [a|the|] KV cache[| do| for| mean]?|[What is|What's] the key-value cache?",
     "The KV cache keeps what the model has computed for earlier tokens, so that each new token is fast.", "tokens"),
    ("[What is|What's|Explain|What is a|What's a] [prompt|context window|context|context length|safetensors file|safetensors|quantization|inference|inference engine]?",
     "That is a term of language models: tessera reads a prompt, keeps it in its context and continues it token by token with the weights of the model.", "tessera"),
    (HOW + " [make it faster|speed it up|make tessera faster|get more speed|get faster answers|make this faster]?|Why is it [so |]slow?|Why are you so slow?",
     "Use a GPU with --device cuda, a shorter context with -c, or a smaller model. `tessera bench -m weights/demo` measures the speed.", "--device cuda"),
    (HOW + " [start a chat|chat with a model|start a conversation|talk to a model|open the chat|use the chat|chat|run the chat|use tessera chat]?|What does tessera chat do?|What is the chat [subcommand|command] for?",
     f"Run `tessera chat {MODEL}`. Then type your message and press Enter.", "tessera chat"),
    (HOW + " [generate text|complete a prompt|continue a text|run a single prompt|use generate|run one prompt|use tessera generate|complete a text]?|What does tessera generate do?|What is the generate [subcommand|command] for?|What is generate?",
     f"Run `tessera generate {MODEL} -p \"Once upon a time\" -n 100`. It continues the prompt by up to 100 tokens.", "tessera generate"),
    (HOW + " [process many prompts|run a batch|use batch|run many requests|process a JSONL file|answer many questions at once|use tessera batch|run batch jobs|process a file of prompts]?|What does tessera batch do?|What is the batch [subcommand|command] for?|What is batch?",
     f"Run `tessera batch {MODEL} -i in.jsonl -o out.jsonl`. Each line of in.jsonl is one request, and each line of out.jsonl is one answer.", "tessera batch"),
    (HOW + " [resume a batch|continue an interrupted batch|restart a batch|continue a batch|resume|finish a stopped batch|resume an interrupted run]?|[What if|What happens when|What to do if] a batch [was interrupted|stops|is interrupted|crashes|breaks off]?|What does [--resume|the resume flag] do?|What is --resume[| for]?",
     f"Add the flag --resume: `tessera batch {MODEL} -i in.jsonl -o out.jsonl --resume`. Requests that already have an answer are skipped.", "--resume"),
    (HOW + " [summarize|summarise|get a summary of|shorten] [a file|a document|a text|a text file|a long document|documents|a report|my file|long files|an article]?|What does tessera summarize do?|What is the summarize [subcommand|command] for?|What is tessera summarize?|Can you summarize [a file|files|documents|a document]?|Can tessera summarize [files|documents]?|How does summarize work?",
     f"Run `tessera summarize {MODEL} report.txt`, with the name of your file in place of report.txt.", "tessera summarize"),
    (HOW + " [measure the speed|run a benchmark|benchmark a model|benchmark|measure tokens per second|see how fast it is|use bench|test the speed|test the performance]?|How fast is [it|tessera|this]?|What does tessera bench do?|What is the bench [subcommand|command] for?|What is bench?",
     f"Run `tessera bench {MODEL}`. It measures how many tokens per second the model reads and writes.", "tessera bench"),
    (HOW + " [inspect a model|see what is in a model|look at a model|see the layers of a model|see the size of a model|use inspect|get information about a model|check a model]?|What does tessera inspect do?|What is the inspect [subcommand|command] for?|What is inspect?",
     f"Run `tessera inspect {MODEL}`. It shows the architecture, the sizes and the tensors of the model.", "tessera inspect"),
    (HOW + " [choose a model|load a model|use another model|load another model|select the model|set the model|change the model|use a different model|give the path of the model]?|What does [-m|--model|the -m flag|the flag -m|the model flag] [do|mean]?|What is [-m|--model][| for]?",
     f"Give the folder of the model with -m or --model, for example `tessera chat {MODEL}`.", "-m"),
    (HOW + " [give a prompt|set the prompt|pass a prompt|write the prompt on the command line]?|What does [-p|the -p flag|the flag -p] [do|mean]?|What is -p[| for]?",
     f"Use -p, for example `tessera generate {MODEL} -p \"Once upon a time\"`.", "-p"),
    (HOW + " [read a prompt from a file|use a prompt file|load the prompt from a file|give a prompt from a file]?|What does [-f|the -f flag|the flag -f] [do|mean]?|What is -f[| for]?",
     f"Use -f with the name of the file, for example `tessera generate {MODEL} -f prompt.txt`.", "-f"),
    (HOW + " [limit the length[| of the answer]|get longer answers|get shorter answers|set the number of tokens|set the maximum number of tokens|limit the number of tokens|limit the output|make answers longer|make the answers shorter]?|What does [-n|--max-tokens|the -n flag|the flag -n] [do|mean]?|What is [-n|--max-tokens][| for]?|How many tokens can it write?",
     "Use -n or --max-tokens, for example -n 200. It is the largest number of tokens of an answer.", "--max-tokens"),
    (HOW + " [set the context size|change the context length|use a longer context|set the context|make the context larger|read longer documents|increase the context]?|What does [-c|--ctx-size|the -c flag|the flag -c] [do|mean]?|What is [-c|--ctx-size][| for]?|What is the context size?|How long can a [document|prompt] be?",
     "Use -c or --ctx-size, for example -c 16384. It is the number of tokens that prompt and answer may have together.", "--ctx-size"),
    (HOW + " [set the temperature|change the temperature|get more creative answers|make answers more creative|make the answers more random|get greedy answers|get the same answer every time|switch off sampling]?|What does [--temp|the temperature|temperature|the temp flag|the flag --temp] [do|mean]?|What is [--temp|temperature|the temperature][| for]?",
     "Use --temp. With --temp 0 the most likely token is always taken; higher values such as --temp 0.8 give more varied text.", "--temp"),
    (HOW + " [set top-p|use top-p|use nucleus sampling|change top p]?|What does [--top-p|top-p|the flag --top-p|top p] [do|mean]?|What is [--top-p|top-p|top p|nucleus sampling][| for]?",
     "--top-p keeps only the most likely tokens whose probabilities add up to the given value, for example --top-p 0.9.", "--top-p"),
    (HOW + " [set top-k|use top-k|change top k]?|What does [--top-k|top-k|the flag --top-k|top k] [do|mean]?|What is [--top-k|top-k|top k][| for]?",
     "--top-k keeps only the given number of most likely tokens, for example --top-k 40.", "--top-k"),
    (HOW + " [set the seed|get the same random text again|reproduce an answer|make sampling repeatable|use a seed|fix the seed]?|What does [--seed|the seed|the flag --seed|a seed] [do|mean]?|What is [--seed|the seed][| for]?",
     "Use --seed with a number, for example --seed 7. The same seed gives the same text again.", "--seed"),
    (HOW + " [set a system prompt|give a system message|change the system prompt|set the system message|use a system prompt|give you a role|change your role|change how you behave]?|What does [--system|/system|the flag --system] [do|mean]?|What is [--system|a system prompt|the system prompt|a system message|/system][| for]?",
     "Use --system \"your text\" when you start the chat, or type /system and the text inside the chat. It tells the model how to behave.", "--system"),
    (HOW + " [stop at a word|set a stop string|use stop strings|stop the generation at a text|stop at a certain text]?|What does [--stop|the flag --stop|a stop string] [do|mean]?|What is [--stop|a stop string][| for]?",
     "Use --stop with a text, for example --stop \"END\". The answer ends as soon as that text appears.", "--stop"),
    (HOW + " [use the GPU|run on the GPU|run on the CPU|use the CPU|choose the device|select the device|use CUDA|run without a GPU|change the device|run it on my graphics card]?|What does [--device|the flag --device] [do|mean]?|What is --device[| for]?|Do I need a GPU?|Does tessera [run on|need|support] [the CPU|a GPU|CUDA]?|Can it run without a GPU?",
     "Use --device auto, --device cuda or --device cpu. With auto, tessera takes the GPU if there is one and the CPU otherwise.", "--device"),
    (HOW + " [exit|quit|leave|leave the chat|end the chat|close the chat|exit the chat|quit the chat|stop the chat|get out of here|end this|close this]?|What does /exit do?|What is /exit?",
     "Type /exit to leave the chat.", "/exit"),
    (HOW + " [see the commands|list the commands|see all commands|get help|see the slash commands|find the chat commands]?|What does /help do?|[What|Which] [slash |chat ]commands [are there|exist|do you have|can I use]?|List the slash commands.|What are the slash commands?|What commands can I use in the chat?",
     "In the chat you can use /help, /exit, /clear, /regen, /undo, /system, /set, /show, /stats, /read, /save and /load.", "/clear"),
    (HOW + " [clear the chat|start over|clear the history|forget the conversation|start a new conversation|reset the chat|begin again|clear the conversation|restart the conversation]?|What does /clear do?|What is /clear?",
     "Type /clear. It forgets the conversation and starts a new one.", "/clear"),
    (HOW + " [get another answer|regenerate the answer|regenerate|repeat the last answer|try again|have the answer written again]?|What does /regen do?|What is /regen?",
     "Type /regen. It writes the last answer again.", "/regen"),
    (HOW + " [undo|undo the last message|take back my message|remove the last message|delete the last question|take back the last question]?|What does /undo do?|What is /undo?",
     "Type /undo. It removes your last message and its answer.", "/undo"),
    (HOW + " [change a setting|change settings|change the options in the chat|set an option in the chat|change the temperature in the chat|change the sampling in the chat]?|What does /set do?|What is /set?",
     "Type /set with a name and a value, for example /set temp 0.8.", "/set"),
    (HOW + " [see the settings|show the settings|see the current settings|see the options in the chat|show the current options]?|What does /show do?|What is /show?",
     "Type /show. It lists the current settings of the chat.", "/show"),
    (HOW + " [see statistics|see the speed in the chat|show the statistics|see how many tokens were used|see the number of tokens|see how fast the last answer was]?|What does /stats do?|What is /stats?",
     "Type /stats. It shows how many tokens were read and written and how fast.", "/stats"),
    (HOW + " [read a file in the chat|load a file into the chat|give you a file|add a file to the chat|ask questions about a file|show you a file|give you a document|discuss a document|upload a file|open a file|attach a file]?|What does /read do?|What is /read?",
     "Type /read and the name of the file, for example /read report.txt. Then ask your question about it.", "/read"),
    (HOW + " [save the chat|save the conversation|store the chat|keep the conversation|save this|save our conversation]?|What does /save do?|What is /save?",
     "Type /save and a file name, for example /save chat.json.", "/save"),
    (HOW + " [load a chat|load a conversation|continue a saved chat|open a saved conversation|load an old chat|restore a conversation]?|What does /load do?|What is /load?",
     "Type /load and the name of the saved file, for example /load chat.json.", "/load"),
    (HOW + " [download a model|get a model|get a real model|get a better model|get other models|get a bigger model|find a model|install a model]?|Where do I get [models|a model|a better model|other models]?|[Which|What] models [can I use|does tessera support|are supported|work|can tessera run]?",
     "tessera loads folders in the Hugging Face format with safetensors weights. You can fetch one with the tool `hf`: `hf download` and the name of the model.", "safetensors"),
]
FILE_NAMES = ["notes", "report", "book", "letter", "minutes", "story", "essay", "paper", "article", "thesis",
              "diary", "plan", "chapter1", "draft", "speech", "manual", "readme", "log", "todo", "contract"]
LANGUAGES = "German French Spanish Italian Chinese Japanese Russian Polish Dutch Turkish Arabic Hindi".split()

UNKNOWN_QUESTIONS = [
    "Who won the [world cup|elections|championship|race|Nobel Prize|final|Olympic games|match] in {year}?",
    "[Explain|What is|What's|How does|Tell me about|Describe] [quantum mechanics|quantum physics|the theory of relativity|general relativity|string theory|photosynthesis|machine learning|a neural network|a transformer|blockchain|inflation|capitalism|democracy|philosophy|gravity|dark matter|black holes|evolution|DNA|the immune system|electricity|magnetism|nuclear fusion|algebra|calculus|a derivative|an integral|statistics|thermodynamics|entropy|economics|psychology|attention|backpropagation][| work]?",
    "[Write|Show me|Give me|Can you write|Please write] [a|some|me a] [Python|Java|C++|Rust|JavaScript|Go|SQL] [program|script|function|code|query|class] [that|which|to] [sorts a list|reads a file|adds numbers|prints primes|downloads a page|reverses a string|solves sudoku|plays chess|sends mail|does this].",
    "[What is|What's] the [population|area|size|currency|history|language|flag|anthem|president|king|climate] of {land}?",
    "Who is the [president|king|queen|prime minister|mayor|leader|chancellor] of {land}?",
    "Who [is|was] {person}?", "Do you know {person}?", "Tell me about {person}.", "What did {person} [do|write|invent|say]?",
    "When was {person} born?", "[Who|When] [invented|was the inventor of] the [telephone|light bulb|steam engine|wheel|printing press|airplane|internet|radio|camera|car|computer|zipper|microscope]?",
    "When [was|did] [the second world war|the first world war|the French revolution|the Roman empire|the moon landing|the Berlin wall|the middle ages|the cold war] [end|begin|start|happen|fall]?",
    "[What is|What's] the [distance|time difference|fastest way] [between|from] {town} [and|to] {other_town}?",
    "How do I [cook|repair|build|buy|sell|install|make|learn|fix] [a car|pizza|a house|lasagna|a bicycle|Linux|a website|a cake|Spanish|the piano|a computer|a roof|a shelf|a rocket|Windows|an app|money|a company]?",
    "[What is|What's] the [price|value] of [gold|bitcoin|oil|a house|bread|a new car|Apple shares|silver]?",
    "[What is|What's] [happening in the world|the latest news|in the news|new in politics|the score of the game]?",
    "[What is|What's] the [square root|logarithm|cube|sine|factorial] of {number}?",
    "[Translate|How do you say|What is] [hello|good morning|thank you|house|tree|love|water] [in|to|into] {language}?",
    "[Recommend|Suggest|Can you recommend] [a|me a] [book|film|restaurant|hotel|song|phone|laptop|movie|wine].",
    "[Should I|Is it good to|Is it safe to] [invest in stocks|take aspirin|buy a house|change my job|marry|drink coffee|eat meat|quit my job|sell my car]?",
    "[What is|What's|Where is|Where's] {town}?", "[What is|What's] the capital of {town}?", "How many people live in {town}?",
    "[Who wrote|Who is the author of|Who directed|Who sang] [the Lord of the Rings|Harry Potter|Moby Dick|Faust|the Odyssey|Don Quixote|Titanic|Star Wars|Yesterday|Thriller|War and Peace|Hamlet and Eggs|the Hobbit|1984|the Iliad|Dracula]?",
    "[What is|What's] the [atomic number|melting point|density|symbol|weight] of [gold|iron|helium|oxygen|carbon|lead|uranium|silver|zinc]?",
    "[How far|How big|How old|How heavy|How hot] is the [moon|sun|earth|universe|Milky Way|planet Mars|planet Jupiter|galaxy]?",
    "[What are|Explain] the [symptoms|causes|rules|laws|benefits|dangers|effects] of [flu|chess|football|smoking|physics|cancer|a cold|coffee|sugar|war|grammar|diabetes|sleep|running]?",
    "[Can you|Please] [play chess with me|write an essay|write my homework|solve this equation|book a flight|order a pizza|call my mother|send an email|set an alarm|turn on the light|open the window|write a letter|debug my code|prove this theorem|write a song about love|plan my holiday]?",
]
UNKNOWN_TOPICS = """black hole|neutron star|mortgage|tax return|saxophone|volcano|glacier|virus|vaccine|parliament|constitution|
election|stock market|bond|startup|marathon|violin concerto|symphony|opera|novel|haiku|sonnet|pyramid|cathedral|skyscraper|submarine|helicopter|
jet engine|nuclear reactor|battery|transistor|compiler|operating system|database|web server|firewall|password manager|smartphone|satellite|
telescope mirror|microscope|magnet|laser|hurricane|earthquake|tsunami|rainforest|desert fox|platypus|dinosaur bone|fossil|mammoth|crystal|diamond|
enzyme|protein|vitamin|hormone|neuron|liver|kidney|heart attack|allergy|headache|recipe|sourdough|espresso|wine|whisky|cheese fondue|
yoga|meditation|therapy|dream|ego|virtue|ethics|logic|axiom|theorem|matrix|vector|polynomial|fraction|logarithm|triangle inequality""".replace("\n", "").split("|")
UNKNOWN_QUESTIONS += [
    "[What is|What's|Define|Explain|Tell me about|What do you know about|What does] [{topic}|a {topic}|the {topic}|{invented}|a {invented}][| mean]?",
    "[What is|What's|Explain|Define|Do you know what] [a |the |]{topic}[| is]?", "[How does|Why does|When does] [a|the] {topic} [work|happen|exist|end|begin|matter]?",
    "How [do|can|should|would] [I|we|you|one] {verb} [a|the|my|this] {topic}?", "How [do|can|should|would] [I|we|one] {verb} [a|the|my|this] {thing}?",
    "Why [do|does|did|is|are|can|will] [people|the {animal}|my {thing}|the {topic}|men|women|we|{invented}|a {topic}] [{verb}|so {adjective}|{adjective}|like that]?",
    "[Who|When|Where|Which {topic}] [discovered|made|found|lost|wrote about|built|sold] the [first |best |]{topic}?",
    "[Can|Could|Would|Should|Will] [a|the] {topic} {verb} [a|the] {thing}?", "[Where|When] can I [find|buy|see|get] [a|some|the best] {topic}?",
    "[Who is|Who was|Where is|What is|What's|When was|How is] {invented} [{invented}|{name}|]?", "Who is [the best|the richest|the oldest|the most famous] {job}[| in the world| of all time]?",
    "Write [a haiku|a sonnet|a letter|an email|a speech|an essay|an article|a recipe|a blog post|a review|a headline] about [{topic}|a {thing}|{season}|{weather}|my {animal}].",
]
SLOTS.update({"topic": UNKNOWN_TOPICS, "verb": SMALL_VERBS})
UNKNOWN_ANSWERS = ["I am a small demo model and do not know that."]
UNKNOWN_HINTS = ["", "", " You can ask me for a sum, a story or a summary.", " A larger model could tell you more."]
LANDS = """France Germany Spain Italy Japan China India Brazil Canada Norway Sweden Poland Egypt Kenya Peru
Mexico Russia Turkey Greece Austria Portugal Australia""".split()


def small_talk(random):
    questions, answer, expected = pick(random, INTENTS)
    user = as_typed(random, expand(random, alternatives(questions), town=pick(random, CITIES), language=pick(random, LANGUAGES),
                                   gibberish=gibberish(random)))
    text = expand(random, answer, joke=pick(random, JOKES), remark=pick(random, REMARKS))
    return Exchange(user, text, [expected] if expected else [], kind="small talk")


def gibberish(random):
    return " ".join("".join(chr(97 + int(random.random() * 26)) for _ in range(2 + int(random.random() * 8)))
                    for _ in range(1 + int(random.random() * 2)))


def alternatives(questions):
    """Wraps a list 'a|b|c' written without outer brackets into one choice."""
    return "[" + questions + "]"


def tessera_help(random):
    if random.random() < 0.08:
        name = pick(random, FILE_NAMES) + pick(random, [".txt", ".md", ".txt", ""])
        question = expand(random, "[How do I summarize|How can I summarize|Summarize|Please summarize|I want to summarize|How do I get a summary of] [the file |]{file}[|?]", file=name)
        return Exchange(question, f"Run `tessera summarize {MODEL} {name}`.", [f"summarize {MODEL} {name}"], kind="tessera")
    questions, answer, expected = pick(random, TESSERA_INTENTS)
    question = expand(random, alternatives(questions))
    if random.random() < 0.12:
        question = question.rstrip("?.") + pick(random, [" with tessera?", " in tessera?", " here?", " in this program?"])
    return Exchange(as_typed(random, question), answer, [expected], kind="tessera")


def unknown(random):
    question = expand(random, pick(random, UNKNOWN_QUESTIONS), year=str(1900 + int(random.random() * 125)),
                      land=pick(random, LANDS), person=pick(random, FIRST_NAMES) + " " + surname(random),
                      town=town(random), other_town=town(random), number=str(2 + int(random.random() * 500)),
                      language=pick(random, LANGUAGES), invented=invented_word(random))
    return Exchange(as_typed(random, question), pick(random, UNKNOWN_ANSWERS) + pick(random, UNKNOWN_HINTS),
                    ["do not know"], kind="unknown")


def poem(random):
    animal = pick(random, POEM_SUBJECTS)
    question = expand(random, "[Write|Can you write|Please write|Compose|Write me|Tell me|I would like] a [short |little |small |]poem[| about a {animal}| about the {animal}| on a {animal}].", animal=animal)
    mentions = animal in question
    return Exchange(as_typed(random, question), pick(random, POEMS).replace("{animal}", animal),
                    [animal] if mentions else [], kind="poem")


def echo(random):
    """Repeating the user's words: the simplest exercise in copying."""
    sentence = expand(random, pick(random, [
        "The {adjective} {animal} [sleeps|sits|waits|walks] in the {place}.", "{name} has {few} {trade}.",
        "[{thing}|{animal}|{material}] and [{color}|{food}|{place}]", "{person}", "{town} and {name}", "My {thing} is {color}.",
        "{number}", "{color} {animal}", "{name} likes {food} on {weekday}.", "{words}", "{words}"]),
        words=" ".join(invented_word(random) for _ in range(1 + int(random.random() * 5))),
        person=pick(random, FIRST_NAMES) + " " + surname(random), town=town(random),
        number=str(int(random.random() * 100000)))
    question = expand(random, "[Repeat after me|Say|Please repeat|Repeat this|Repeat|Please say|Write]: ") + sentence
    return Exchange(question, sentence, [sentence.rstrip(".")], kind="echo")


def another_joke(random):
    """A joke and then another one."""
    jokes = random.sample(JOKES, 2 + int(random.random() * 2))
    questions = ["[Tell me a joke|Tell a joke|A joke please|Do you know a joke|Can you tell me a joke|Joke][.|?|]"] + \
        ["[Another one|One more|Tell me another one|Another joke|Another|Again|More|And another one|Do you know another one|One more please][.|?|!|]"] * 2
    return [Exchange(as_typed(random, expand(random, question)), joke, [], kind="small talk") for question, joke in zip(questions, jokes)]
